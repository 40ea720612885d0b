import { expect, test } from 'vitest';
import { TextQueue } from '../../../src/main/meaning/text-queue.ts';

test('after eight questions in a row, a text of a fact goes first (R-MEAN-22)', async () => {
  const order: string[] = [];
  const queue = new TextQueue(async (job) => {
    order.push(job.text);
    await Promise.resolve();
    job.resolve(new Float32Array(1));
  });
  const facts = queue.add(['fact 1', 'fact 2', 'fact 3'], { urgent: false });
  const questions = Array.from({ length: 20 }, (_, at) => queue.add([`question ${at}`], { urgent: true }));
  await Promise.all([facts, ...questions]);
  // The first fact was alone in the queue.
  const asked = (from: number, to: number) => Array.from({ length: to - from }, (_, at) => `question ${from + at}`);
  expect(order).toEqual(['fact 1', ...asked(0, 8), 'fact 2', ...asked(8, 16), 'fact 3', ...asked(16, 20)]);
});
