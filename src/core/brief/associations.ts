import { stopWords } from '../search/stop-words.ts';
import { stemOf } from '../search/vocabulary.ts';
import { wordsOf } from '../search/words.ts';

/**
 * Words that belong to one matter, in English and German. A prompt often names another side of a matter than the fact that it needs:
 * "cook something" needs the allergy, and "get this live" the rule for deployments. The model that compares meanings is too small to
 * know all of this. Each line is one matter.
 */
const MATTERS = `
commit commits commited git stage staged squash amend einchecken
branch branches checkout worktree ticket issue rebase merge zweig
pr pull request review reviewer reviewers merge
release releases ship deploy deployed deployment publish live production prod rollout launch version tag upload veröffentlichen ausliefern
test tests testing spec specs cover coverage pytest vitest jest rspec minitest playwright cypress fixture mock snapshot testen
format formatting formatter indent reindent indentation lint linter prettier tabs spaces style einrücken formatieren
install dependency dependencies package packages library libraries npm pnpm yarn pip uv cargo brew apt nix installieren paket
error errors exception exceptions fail fails failed failure failures crash toast alert swallow swallows fehler fehlermeldung
log logs logging logger print debug trace console protokoll
retry retries timeout timeouts flaky robust resilient backoff unreliable
database db sql query queries table column schema migration migrations postgres postgresql mysql sqlite orm index datenbank tabelle
css style styles styling colour color colours greener darker brighter theme layout center padding margin spacing design font button
component components screen page card form sidebar dialog react svelte vue frontend ui
label text texts string strings hint wording caption translation translations locale i18n übersetzung
docs document documentation readme docstring docstrings comment comments describe proofread spelling manual dokumentieren
chart charts plot plots visualise visualize graph graphs figure figures diagram diagrams draw flow sketch mermaid matplotlib diagramm
endpoint endpoints route routes api url path json field fields rest naming named handler schnittstelle
config configuration setting settings option options environment toml yaml adjustable variable einstellung
feature flag flags toggle hide beta experiment
secret secrets key keys token tokens password passwords credential credentials vault login passwort kennwort
ci pipeline pipelines build builds workflow workflows runner actions
docker dockerfile container containers image images pod pods kubernetes kubectl cluster registry service
server servers host hosts machine ssh port connect connection staging login remote box rechner
backup backups restore restored deleted recover lost snapshot wiederherstellen gelöscht sicherung
queue queues job jobs background async asynchronous asynchronously worker event events kafka redis
metrics metric alert alerts monitor monitoring dashboard dashboards outage observability traces exceptions sentry grafana
auth authentication password passwords passkey passkeys login signup session oauth anmelden
storage upload bucket s3 file files cloud hosting provider exports
analytics telemetry tracking visitors cookies usage statistics count readers
app apps mobile native ios iphone android pwa store
editor ide keybinding keybindings shortcut vim helix vscode emacs pycharm diagnostic definition
shell terminal bash zsh fish command one-liner script find grep
python pip uv venv virtualenv ruff numpy script
notebook notebooks jupyter marimo interactive interactively explore dataframe dataframes pandas polars csv dataset
date dates today time times timestamp created_at calendar datum uhrzeit
number numbers amount amounts currency money cents decimal float units unit
price prices cost costs pay paid budget bill bills billing invoice invoices rate offer quote charge afford expensive preis rechnung kosten verlange angebot stundensatz
tax taxes vat deduction filings finanzamt steuer steuern adviser advisor accountant accounting books bookkeeping
contract contracts terms nda agreement lawyer legal liability licence license vertrag anwalt
approve approval okay sign sign-off permission decides decision owner manager boss
security injection vulnerability hole leak report exploit
customer customers client clients user users support inquiry request kunde kunden
recipe recipes cook cooking bake dinner dinners lunch breakfast supper eat eats food meal meals restaurant dish dishes snack pizza pancakes cake bread pasta allergy allergies allergic intolerance vegetarian vegan diet gluten wheat coeliac celiac peanut peanuts nut nuts lactose groceries kochen rezept essen abendessen mittagessen allergie vegetarisch
workout gym exercise exercises training fitness sport jump jumping knee back injury deadlift deadlifts run running
doctor doctors gp appointment check-up medicine medication pill pills tablet tablets antibiotics penicillin allergy sick ill pain sneezing vaccine vaccination shot tetanus prescription arzt medikament impfung
trip travel travels flight flights fly plane train trains ticket tickets seat seats fare fares book booking hotel hotels room luggage airline easyjet station journey railcard bahncard reise zug flug sitzplatz buchen fahrkarte bahn
passport passports visa documents abroad trip fly travel pass
meeting meetings schedule appointment call slot calendar kickoff workshop invite availability termin treffen besprechung
holiday holidays vacation leave out-of-office autoreply autoresponder absent away urlaub abwesenheit
deadline due finish finished hand milestone launch deliver left weeks months abgabe frist
present gift gifts birthday anniversary likes loves geschenk geburtstag
mother mum mom mama father dad papa parents mutter vater birthday geburtstag
wife husband partner spouse girlfriend boyfriend anniversary frau mann
child children kid kids daughter son sons little nephew nephews niece kinder tochter sohn
sister brother sibling siblings schwester bruder
pet pets cat dog vet kitten puppy katze hund tierarzt
read reading novel novels author authors fiction recommend lesen buch
film films movie movies watch cinema tonight series
music song songs listen play playlist concentrate album band musik
wifi wlan wi-fi network router guest password internet
address street parcel delivery deliver flat lives adresse paket liefern
heating cold freezing radiators thermostat boiler warm heizung
landlord landlady repair repairs rent mould leak leaking broken plumber vermieter miete
locked spare key neighbour neighbor schlüssel nachbar
bin bins garbage rubbish trash recycling paper müll tonne
park parking car garage bay gate guests visitors parken auto
garden water watered watering plants beds plant gießen pflanzen
bank account transfer iban konto
mail email mails letter reply tone friendly signed signature message announcement mail schreiben antwort
answer answers answering explain summarize summarise present bullet bullets concise short verbosity introduction conclusion diff antworten
language languages english german british spelling chat sprache deutsch englisch
emoji emojis cheerful tone humour
photo photos picture pictures image images camera upload post raw foto fotos bild
homework course teach teaching lecture student students talk conference abstract
print printer printed pdf drucken drucker
vpn lab reach network remote home
experiment study statistics model training predict prediction forecast
`;

/** The matters of each word, by its stem. */
const mattersOf = new Map<string, readonly string[][]>();
for (const line of MATTERS.trim().split('\n')) {
  const matter = line.split(' ');
  for (const stem of new Set(matter.flatMap((word) => wordsOf(word)).map(({ term }) => stemOf(term))))
    mattersOf.set(stem, [...(mattersOf.get(stem) ?? []), matter]);
}

/** Returns the words that belong to the matters of a text, without those of the text. */
export function associatedWords(text: string): readonly string[] {
  const terms = wordsOf(text).filter(({ term }) => !stopWords.has(term));
  const stems = new Set(terms.map(({ term }) => stemOf(term)));
  const words = [...stems].flatMap((stem) => mattersOf.get(stem) ?? []).flat();
  return [...new Set(words)].filter((word) => !stems.has(stemOf(word)));
}
