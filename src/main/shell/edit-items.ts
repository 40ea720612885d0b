import type { ContextMenuParams, MenuItemConstructorOptions } from 'electron';

type Clicked = Pick<ContextMenuParams, 'isEditable' | 'selectionText' | 'editFlags'>;

/** Context menu items for text, labelled by the system. Empty if there is no text. */
export function editItems({ isEditable, selectionText, editFlags }: Clicked): MenuItemConstructorOptions[] {
  const copy: MenuItemConstructorOptions = { role: 'copy', enabled: editFlags.canCopy };
  if (!isEditable) return selectionText.trim() === '' ? [] : [copy];
  return [
    { role: 'cut', enabled: editFlags.canCut },
    copy,
    { role: 'paste', enabled: editFlags.canPaste },
    { type: 'separator' },
    { role: 'selectAll', enabled: editFlags.canSelectAll },
  ];
}
