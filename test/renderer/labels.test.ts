import { expect, test } from 'vitest';
import { Failure } from '../../src/contract/failure.ts';
import { errorText } from '../../src/renderer/src/ui/labels.ts';

const labels = { ttl_seconds: 'Lifetime', tags: 'Tags', 'inputs.word': 'word' };
const refused = (message: string): Failure => new Failure('invalid_input', message);

test.each([
  ['ttl_seconds must be less.', 'Lifetime must be less.'],
  ['tags must be at most 32; keep some.', 'Tags must be at most 32; keep some.'],
  ['tags.0 must have 1 to 64 characters.', 'Tags: number 1 must have 1 to 64 characters.'],
  ['inputs.word is missing; send it.', 'word is missing; send it.'],
  ['key is missing; send it.', 'key is missing; send it.'],
  ['constructor is missing; send it.', 'constructor is missing; send it.'],
  ['Use fewer tags.', 'Use fewer tags.'],
])('an error names the field by its label, if the form has one: %s (R-WIN-42)', (message, said) => {
  expect(errorText(refused(message), labels)).toBe(said);
});

test('other errors stay unchanged', () => {
  const failed = new Failure('store_unavailable', 'tags cannot be read; try again.');
  expect(errorText(failed, labels)).toBe(failed.message);
  expect(errorText(new Error('tags are missing'), labels)).toBe('tags are missing');
  expect(errorText('missing', labels)).toBe('missing');
});
