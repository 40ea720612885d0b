/**
 * Common words with little meaning, without diacritics. Search gives them a low weight rather than ignoring them, so that a query
 * that has only stop words still finds facts.
 */
const words = `
a an the and or but if of in on at to for from by with about into as is are was were be been being am do does did done
have has had having will would shall should can could may might must not no what when where which who whom whose why how
this that these those there here it its i me my mine we us our you your he him his she her they them their s t d ll re ve m
so than then too very just also any some please tell show find know get got much many want need say said

der die das den dem des ein eine einen einem einer eines und oder aber wenn von im in am an auf zu zum zur fur mit bei aus
ist sind war waren sein wird werden wurde hat haben hatte kann konnen muss soll darf nicht kein keine was wann wo wer wie
warum welche welcher welches wem wen es er sie wir ihr ich mir mich mein meine unser dein nach uber als auch noch bitte gibt

le la les l un une des du de d et ou mais si dans sur a au aux pour par avec est sont etait etre ont quel quelle quels
quelles que qui quoi quand comment pourquoi ou ce cette ces c j je n ne pas il elle on nous vous ils mon ma mes t son sa ses y

el los las una unos unas del y o pero en con por para es son era ser esta estan fue ha han que cual cuales quien cuando
donde como porque no se su sus mi mis lo al tiene hay

il lo gli uno di da nel per con e ed che chi cosa quando dove come perche non mi si sono
o os as um uma do da dos das em no na nos nas e ou que qual quem quando onde como nao se seu sua
het een van op met voor is zijn was wat wanneer waar wie hoe waarom niet ik mijn wij de en
i w z na do jest sa co kiedy gdzie kto jak czy nie
ve veya ama ile icin bir bu su o ne zaman nerede kim nasil neden mi mu var yok da de hangi kac

и в во не что он на я с со как а то все она так его но да ты к у же вы за бы по ее мне есть от о из ему когда где кто
какои какая какие каком почему ли для мы это чеи мои был была были быть

في من على عن الى إلى هو هي هذا هذه ما متى اين أين كيف لماذا هل مع كان التي الذي و او
את של על עם זה מה מתי איפה מי איך למה לא הוא היא
και το η ο οι τα του της των σε με για που ποτε πως ειναι δεν τι
है हैं का की के में को से और पर क्या कब कहाँ कौन कैसे क्यों होती होता था थी

什么 怎么 为什 时候 哪里 哪个 哪些 多少 多久 是否 我们 我的 你的 是什 在哪 谁的 有没 没有 吗 呢 的 了 是 在 我 你 他 她 么时 几点
いつ どこ だれ なに どう です ます ますか ました ません して する した ある いる から まで こと もの これ それ すか りま いま
무엇 언제 어디 누가 누구 어떻 어떤 나요 까요 니다 습니 합니 입니 인가 는가 예요 이에 에요 하나 하는 있나 있는 있습
`;

export const stopWords: ReadonlySet<string> = new Set(words.split(/\s/).filter((word) => word !== ''));
