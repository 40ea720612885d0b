import { lazy } from '../../../contract/schema.ts';
import { stemOf } from '../../search/vocabulary.ts';
import { foldText } from '../../search/words.ts';

/** The kind of action that a request asks for, regardless of its object. */
export type RequestAction = 'read' | 'keep' | 'forget' | 'make' | 'change' | 'send';

const verbs: Record<RequestAction, string> = {
  read: `list show get fetch find read see look view check download retrieve display load search query browse lookup recall
    zeig zeige zeigen liste finde finden hole holen suche suchen lies lesen lade prüfe
    montre montrer affiche afficher trouve trouver cherche chercher liste lire récupère
    muestra mostrar busca buscar encuentra lee leer lista obtén
    mostra trova cerca leggi elenca toon zoek vind lees`,
  keep: `remember memorize memorise store save keep note record
    merke merken merk speichere speichern notiere notieren behalte
    souviens retiens retenir enregistre enregistrer note mémorise
    recuerda recordar guarda guardar anota ricorda salva onthoud bewaar запомни сохрани`,
  forget: `forget erase delete remove clear wipe purge drop discard
    vergiss vergessen lösche löschen entferne entfernen
    oublie oublier efface effacer supprime supprimer olvida olvidar borra borrar elimina eliminar
    dimentica cancella vergeet verwijder забудь удали`,
  make: `create make add write draft compose generate build produce prepare
    erstelle erstellen schreibe schreiben erzeuge
    crée créer écris rédige ajoute crea crear escribe añade scrivi aggiungi maak schrijf создай`,
  change: `edit update change rename close reopen assign label merge modify move rewrite
    ändere ändern schließe schließen bearbeite modifie ferme modifica cambia cierra chiudi wijzig sluit`,
  send: `send email mail share publish tweet notify reply comment upload
    sende senden schicke schicken veröffentliche antworte envoie envoyer publie envía enviar publica
    invia manda stuur отправь`,
};

const actions = lazy(() => {
  const all = new Map<string, RequestAction>();
  for (const [action, list] of Object.entries(verbs) as [RequestAction, string][]) {
    for (const verb of list.split(/\s+/).map(foldText)) all.set(verb, action).set(stemOf(verb), action);
  }
  return all;
});

const SHORT_STEM = 3;

/** Words that are nouns or adjectives as often as verbs. They count as verbs only before an article. */
const ambiguousVerbs = new Map<string, RequestAction>(
  Object.entries({ open: 'make', file: 'make', issue: 'make', report: 'make', raise: 'make', post: 'send' } as const),
);
const articles = new Set(['a', 'an', 'the', 'this', 'new', 'another']);

/** Returns the action that a word expresses. The next word decides if the word is ambiguous. */
export function actionOf(term: string, next = ''): RequestAction | undefined {
  const stem = stemOf(term);
  // Stems of short words are ambiguous ("note" and "not"), so compare the short word itself.
  return actions().get(stem.length > SHORT_STEM ? stem : term) ?? (articles.has(next) ? ambiguousVerbs.get(term) : undefined);
}
