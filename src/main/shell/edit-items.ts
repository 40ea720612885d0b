import type { ContextMenuParams, MenuItemConstructorOptions } from 'electron';

type ClickTarget = Pick<ContextMenuParams, 'isEditable' | 'selectionText' | 'editFlags'>;

/** Returns the context menu items for text. The system provides their labels. Returns an empty list if there is no text. */
export function editItems({ isEditable, selectionText, editFlags }: ClickTarget): MenuItemConstructorOptions[] {
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
