import { expect, test } from 'vitest';
import { editItems } from '../../../src/main/shell/edit-items.ts';

const ALL = { canUndo: true, canRedo: true, canCut: true, canCopy: true, canPaste: true, canDelete: true, canSelectAll: true };
const editFlags = { ...ALL, canEditRichly: false };

test.each([
  { where: 'a field', clicked: { isEditable: true, selectionText: '' }, offers: ['cut', 'copy', 'paste', 'selectAll'] },
  { where: 'selected text', clicked: { isEditable: false, selectionText: 'a value' }, offers: ['copy'] },
  { where: 'anything else', clicked: { isEditable: false, selectionText: ' ' }, offers: [] },
])('a right click on $where offers $offers (R-DESK-17)', ({ clicked, offers }) => {
  expect(editItems({ ...clicked, editFlags }).flatMap(({ role }) => role ?? [])).toEqual(offers);
});

test('items that are not available are disabled (R-DESK-17)', () => {
  const none = { ...editFlags, canCut: false, canCopy: false, canPaste: false, canSelectAll: false };
  const items = editItems({ isEditable: true, selectionText: '', editFlags: none });
  expect(items.filter(({ type }) => type !== 'separator').map(({ enabled }) => enabled)).toEqual([false, false, false, false]);
});
