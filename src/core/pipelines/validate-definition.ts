import { Failure } from '../../contract/failure.ts';
import { PIPELINE } from '../../contract/limits.ts';
import type { PipelineDefinition } from '../../contract/pipeline.ts';
import { isShallow, hasReferenceInFieldName, type Reference, referencesIn } from './references.ts';

const refuse = (sentence: string): never => {
  throw new Failure('invalid_input', sentence);
};

/** Throws if a pipeline could never run, so that the error is reported when the pipeline is stored rather than in a run. */
export function validateDefinition(definition: PipelineDefinition, isPack: (name: string) => boolean): void {
  if (!isShallow(definition)) refuse(`The pipeline is nested more than ${PIPELINE.depth} levels deep; make its inputs flatter.`);
  if (Buffer.byteLength(JSON.stringify(definition)) > PIPELINE.bytes) {
    refuse(`The pipeline is larger than ${PIPELINE.bytes / 1024} KiB; shorten it.`);
  }
  const declared = definition.inputs?.map(({ name }) => name);
  for (const [index, name] of (declared ?? []).entries()) {
    if (declared?.indexOf(name) !== index) refuse(`inputs.${index}.name is used by another input; choose a different one.`);
  }
  for (const [index, { default: value }] of (definition.inputs ?? []).entries()) {
    if (referencesIn(value).length > 0 || hasReferenceInFieldName(value)) {
      refuse(`inputs.${index}.default contains \${{, but references are not replaced in a default; write the value itself.`);
    }
  }
  const ids = definition.steps.map(({ id }) => id);
  for (const [index, { id, pack, input }] of definition.steps.entries()) {
    const place = `steps.${index}`;
    if (ids.indexOf(id) !== index) refuse(`${place}.id is used by another step; choose a different one.`);
    if (!isPack(pack)) refuse(`${place}.pack is ${pack}, which does not exist; list the packs to see their names.`);
    if (hasReferenceInFieldName(input))
      refuse(
        `${place}.input has \${{ in a field name, but references are only replaced in values; move the reference into a value.`,
      );
    for (const reference of referencesIn(input)) {
      if (reference === 'unreadable') {
        refuse(
          `${place}.input contains \${{ without a valid reference; write \${{ inputs.<name> }} or \${{ steps.<id>.output.<path> }}.`,
        );
      } else refuseUnknown(place, reference, declared, ids.slice(0, index), ids.slice(index));
    }
  }
}

function refuseUnknown(
  place: string,
  reference: Reference,
  declared: readonly string[] | undefined,
  earlier: readonly string[],
  later: readonly string[],
): void {
  const description = `${place}.input refers to ${reference.source}`;
  if (reference.to === 'input') {
    if (declared?.includes(reference.name) === false)
      refuse(`${description}, which is not an input; declare the input, or correct its name.`);
  } else if (later.includes(reference.step)) refuse(`${description}, which has not run yet; refer to an earlier step.`);
  else if (!earlier.includes(reference.step)) refuse(`${description}, which is not a step; correct its name.`);
}

/**
 * Returns the names of the inputs that a run accepts. If the pipeline declares no inputs, these are the names to which its steps
 * refer.
 */
export function inputNames({ inputs, steps }: PipelineDefinition): string[] {
  if (inputs) return inputs.map(({ name }) => name);
  const references = referencesIn(steps.map(({ input }) => input)).filter((reference) => reference !== 'unreadable');
  return [...new Set(references.flatMap((reference) => (reference.to === 'input' ? [reference.name] : [])))];
}

export function resolveInputs(definition: PipelineDefinition, sent: Readonly<Record<string, unknown>>): Map<string, unknown> {
  const names = inputNames(definition);
  if (Object.keys(sent).some((name) => !names.includes(name))) {
    refuse(`inputs contains an unknown name; send ${names.length > 0 ? `only ${names.join(', ')}` : 'none'}.`);
  }
  if (!isShallow(sent)) refuse(`inputs is nested more than ${PIPELINE.depth} levels deep; make its values flatter.`);
  const inputs = new Map<string, unknown>();
  for (const name of names) {
    const declared = definition.inputs?.find((input) => input.name === name);
    const value: unknown = Object.hasOwn(sent, name) ? sent[name] : declared?.default;
    if (value !== undefined) inputs.set(name, value);
    else if (declared?.required !== false) refuse(`inputs.${name} is missing; send it.`);
  }
  return inputs;
}
