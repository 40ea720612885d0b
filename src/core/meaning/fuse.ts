/** What a search knows about one fact. */
interface Evidence {
  /** The score of the fact by its words, and the share of the query's information that it covers. Both are 0 without a match. */
  readonly score: number;
  readonly coverage: number;
  /** The cosine of the fact and the question. Undefined if the fact has no vector yet. */
  readonly cosine: number | undefined;
}

interface DatedEvidence extends Evidence {
  readonly category: string;
  /** When the fact was last changed, in milliseconds since 1970. */
  readonly updatedAt: number;
}

interface Fused<Candidate> {
  readonly candidate: Candidate;
  /** The score from 0 to 1. */
  readonly score: number;
}

/** The logistic function. It converts a weighted sum into a probability. */
const logistic = (sum: number): number => 1 / (1 + Math.exp(-sum));

/*
 * All constants of this file were fitted to the rows of the suites that are not held back, and to a chat that is not part of the
 * repository. `node bench/meaning.ts` measures them on the rows that are held back.
 */

/** A fact that covers this share of a question is as likely right as wrong. A larger share is soon nearly certain. */
const COVERAGE = { middle: 0.5, width: 0.055 };
/**
 * The same for a question in another script than Latin. Most models know such scripts poorly, and a word of a script without
 * spaces is indexed as pairs of characters, of which an answer has few.
 */
const COVERAGE_IN_OTHER_SCRIPTS = { ...COVERAGE, middle: 0.2 };
/** The same for the cosine, relative to unrelated texts. */
const COSINE = { middle: 0.3, width: 0.06 };
/** The highest probability by meaning alone, so that facts with an identifier or with the words of the question stay first. */
const MOST_BY_MEANING = 0.9;
/** The fraction of that probability that is lost if another fact covers the whole question. */
const LOST_TO_WORDS = 0.25;
/** The fraction of the score that is the score by words, which also knows fields and the distance between words. */
const SCORE_FRACTION = 0.09;
/** Least relative cosine of a hit that shares no word with the question. */
const LEAST_COSINE = 0.12;

const curve = (value: number, { middle, width }: typeof COVERAGE): number =>
  value === 0 ? 0 : logistic((value - middle) / width);

/**
 * Returns the cosine on a scale on which unrelated texts have 0 and equal texts have 1. `background` is the mean cosine of the
 * question and all facts, which differs between models.
 */
export const relativeTo = (background: number, cosine: number | undefined): number =>
  cosine === undefined ? 0 : Math.max(0, (cosine - background) / (1 - background));

const latin = /\p{Script=Latin}/gu;
const letter = /\p{L}/gu;
const count = (text: string, kind: RegExp): number => text.match(kind)?.length ?? 0;
/** Whether at least half of the letters are Latin. */
const isLatin = (text: string): boolean => count(text, latin) >= count(text, letter) / 2;

/** Whether the meaning of a fact has something to do with the question. */
export const isRelated = (cosine: number | undefined, background: number): cosine is number =>
  cosine !== undefined && relativeTo(background, cosine) >= LEAST_COSINE;

/**
 * Orders facts by the probability that their words or their meaning answer the question, best first. Leaves out facts without a
 * common word whose meaning is far from the question. Facts with equal scores are ordered newest first.
 */
export function fuse<Candidate extends DatedEvidence>(
  question: string,
  candidates: readonly Candidate[],
  background: number,
): Fused<Candidate>[] {
  const byWords = isLatin(question) ? COVERAGE : COVERAGE_IN_OTHER_SCRIPTS;
  const best = candidates.reduce((most, { coverage }) => Math.max(most, coverage), 0);
  const cap = MOST_BY_MEANING * (1 - LOST_TO_WORDS * curve(best, byWords));
  return candidates
    .filter(({ score, cosine }) => score > 0 || isRelated(cosine, background))
    .map((candidate) => {
      const { score, coverage, cosine } = candidate;
      const either = 1 - (1 - curve(coverage, byWords)) * (1 - cap * curve(relativeTo(background, cosine), COSINE));
      // The square root raises low scores, as the exponent of the score by words does.
      return { candidate, score: Math.sqrt((1 - SCORE_FRACTION) * either + SCORE_FRACTION * score) };
    })
    .toSorted(byScore);
}

/** Orders facts by their meaning alone, best first. */
export function byMeaning<Candidate extends DatedEvidence>(
  candidates: readonly Candidate[],
  background: number,
): Fused<Candidate>[] {
  return candidates
    .filter(({ cosine }) => isRelated(cosine, background))
    .map((candidate) => ({ candidate, score: Math.sqrt(curve(relativeTo(background, candidate.cosine), COSINE)) }))
    .toSorted(byScore);
}

const byScore = (one: Fused<DatedEvidence>, other: Fused<DatedEvidence>): number =>
  other.score - one.score || other.candidate.updatedAt - one.candidate.updatedAt;

/** Number of hits of which each pair is compared. */
const COMPARED_HITS = 10;
/** Two facts speak of one matter if their similarity exceeds the mean similarity of the hits by this much. */
const SAME_MATTER = 0.28;
/** How much more similar they must be if the newer fact is a much worse hit, for each unit that its score is too low. */
const STRICTER = 0.65;
const LEAST_RATIO = 0.5;
const NEVER_BELOW = 0.25;
/** A mean similarity, and how many hits it counts as, so that few hits say little about their mean. */
const USUAL = { similarity: 0.25, hits: 4 };

/**
 * Moves the newer of two hits on one matter before the older one. Two facts are on one matter if they are in the same category and
 * more similar to each other than the hits are in general. Models for English find all texts of other scripts similar, so the order
 * of answers to a question in another script stays.
 */
export function newerFirst<Candidate extends DatedEvidence>(
  question: string,
  found: readonly Fused<Candidate>[],
  background: number,
  similarity: (one: Candidate, other: Candidate) => number | undefined,
): Fused<Candidate>[] {
  if (!isLatin(question)) return [...found];
  const hits = found.slice(0, COMPARED_HITS);
  const similar = hits.map((one) =>
    hits.map((other) => (one === other ? 0 : relativeTo(background, similarity(one.candidate, other.candidate)))),
  );
  const sums = similar.map((row) => row.reduce((sum, value) => sum + value, 0));
  const usual = (one: number, other: number): number => {
    const others = ((sums[one] ?? 0) + (sums[other] ?? 0)) / 2 - (similar[one]?.[other] ?? 0);
    return (others + USUAL.hits * USUAL.similarity) / (hits.length - 2 + USUAL.hits);
  };
  const raised = hits.map((newer, place) => {
    const older = hits.slice(0, place).find((hit, at) => {
      // Scores are square roots of probabilities.
      const ratio = (newer.score / hit.score) ** 2;
      return (
        newer.candidate.updatedAt > hit.candidate.updatedAt &&
        newer.candidate.category === hit.candidate.category &&
        ratio >= NEVER_BELOW &&
        (similar[at]?.[place] ?? 0) - usual(at, place) >= SAME_MATTER + STRICTER * Math.max(0, LEAST_RATIO - ratio)
      );
    });
    return older ? { ...newer, score: older.score } : newer;
  });
  return [...raised.toSorted(byScore), ...found.slice(COMPARED_HITS)];
}

/** Weights of the probability that a hit answers the question. */
const ANSWER = { base: -1.37, covered: 4.01, partly: -6.38, cosine: 5.32, lead: 8.95, size: -0.54 };
/** As `COVERAGE`. A fact must cover more of a question to answer it than to be the best hit. */
const ANSWERING = { middle: 0.6, width: 0.1 };
const MAX_LEAD = 0.3;
/** The numbers of facts between which the probability was measured. */
const MEASURED_SIZES = { least: 15, most: 600 };

/**
 * Returns for each hit the probability that it answers the question. A hit that is much closer to the question than all others
 * probably does. A hit that shares only some words with the question probably does not. Among many facts (`size`), the best hit is
 * closer to any question by chance.
 */
export function answerProbabilities(hits: readonly Evidence[], background: number, size: number): number[] {
  const bySize = ANSWER.size * Math.log(Math.min(MEASURED_SIZES.most, Math.max(MEASURED_SIZES.least, size)));
  const cosines = hits.map(({ cosine }) => relativeTo(background, cosine));
  const [first = 0, second = 0] = cosines.toSorted((one, other) => other - one);
  return hits.map(({ coverage }, at) => {
    const cosine = cosines[at] ?? 0;
    const covered = curve(coverage, ANSWERING);
    const lead = Math.max(-MAX_LEAD, Math.min(MAX_LEAD, cosine - (cosine === first ? second : first)));
    return logistic(
      ANSWER.base +
        ANSWER.covered * covered +
        ANSWER.partly * coverage * (1 - covered) +
        ANSWER.cosine * cosine +
        ANSWER.lead * lead +
        bySize,
    );
  });
}

const NEAR = { base: -12.22, cosine: 20.62 };

/** Facts with at least this probability are worth showing to the writer of a fact. */
export const LIKELY_NEAR = 0.64;

/** Returns the probability that a fact repeats or contradicts another fact, from the cosine of the two. */
export const nearProbability = (cosine: number, background: number): number =>
  logistic(NEAR.base + NEAR.cosine * relativeTo(background, cosine));
