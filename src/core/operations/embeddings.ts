import type { EmbedResponse } from '../../contract/embeddings.ts';
import { Failure } from '../../contract/failure.ts';
import type { Memory, MemoryDeps } from './memory.ts';

type EmbeddingOperations = Pick<
  Memory,
  'embed' | 'embeddings' | 'setEmbeddings' | 'approveOllama' | 'pullModel' | 'cancelPull' | 'testEmbeddings'
>;

/** Operations on embeddings. `embed` needs the scope `memory:read`. Only the owner can call the other operations. */
export const embeddings = ({ embeddings: port, clock }: MemoryDeps): EmbeddingOperations => ({
  async embed({ subject }, { model, input, encoding_format: format, dimensions }, { signal }): Promise<EmbedResponse> {
    if (withoutTag(model) !== withoutTag(port.model) && port.model !== '') {
      throw new Failure('invalid_input', `model must be ${port.model}, which is the configured model.`);
    }
    const { vectors, tokens } = await port.embed(subject, typeof input === 'string' ? [input] : input, signal);
    const length = vectors[0]?.length;
    if (dimensions !== undefined && dimensions !== length) {
      throw new Failure(
        'invalid_input',
        `dimensions must be ${length}, the length of this model's vectors; send that or leave it out.`,
      );
    }
    return {
      object: 'list',
      data: vectors.map((vector, index) => ({
        object: 'embedding',
        index,
        embedding: format === 'base64' ? inBase64(vector) : [...vector],
      })),
      model: port.model,
      usage: { prompt_tokens: tokens, total_tokens: tokens },
    };
  },

  embeddings: () => port.report(),

  async setEmbeddings(_caller, choice) {
    await port.configure(choice);
    return port.report();
  },

  async approveOllama(_caller, { hash }) {
    await port.approve(hash);
    return port.report();
  },

  async pullModel() {
    await port.pull();
    return port.report();
  },

  async cancelPull() {
    await port.cancelPull();
    return port.report();
  },

  async testEmbeddings({ subject }, { one, other }, { signal }) {
    const start = clock.steady();
    const { vectors } = await port.embed(subject, [one, other], signal);
    const [first = [], second = []] = vectors;
    return {
      nearness: cosine(first, second),
      dimensions: Math.max(1, first.length),
      duration_ms: Math.round(clock.steady() - start),
    };
  },
});

/** Removes the tag `latest` from a model name, because Ollama assumes this tag for a name without a tag. */
const withoutTag = (model: string): string => model.replace(/:latest$/, '');

function inBase64(vector: readonly number[]): string {
  const bytes = Buffer.allocUnsafe(vector.length * 4);
  for (const [index, value] of vector.entries()) bytes.writeFloatLE(value, index * 4);
  return bytes.toString('base64');
}

function cosine(one: readonly number[], other: readonly number[]): number {
  let [product, first, second] = [0, 0, 0];
  for (const [index, value] of one.entries()) {
    const counterpart = other[index] ?? 0;
    product += value * counterpart;
    first += value * value;
    second += counterpart * counterpart;
  }
  return first === 0 || second === 0 ? 0 : product / Math.sqrt(first * second);
}
