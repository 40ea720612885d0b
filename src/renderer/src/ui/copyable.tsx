import { Button } from './button.tsx';
import { useToast } from './toast.tsx';

export function Copyable({ text, name }: { text: string; name: string }) {
  const { showToast } = useToast();
  const copy = (): void => {
    navigator.clipboard.writeText(text).then(
      () => showToast({ text: 'Copied.' }, 2000),
      () => showToast({ text: 'The browser blocked copying. Select the text and copy it yourself.' }),
    );
  };
  return (
    <div className="copyable">
      <pre>{text}</pre>
      <Button label="Copy" onClick={copy} aria-label={`Copy ${name}`} />
    </div>
  );
}
