/** Patterns of User-Agent headers. Edge and Opera come before Chrome, because their headers contain Chrome's name too. */
const BROWSERS: readonly (readonly [pattern: RegExp, name: string])[] = [
  [/\bEdg(?:A|iOS)?\/(\d{1,4})/, 'Edge'],
  [/\bOPR\/(\d{1,4})/, 'Opera'],
  [/\b(?:Firefox|FxiOS)\/(\d{1,4})/, 'Firefox'],
  [/\b(?:HeadlessChrome|Chrome|CriOS)\/(\d{1,4})/, 'Chrome'],
  [/\bVersion\/(\d{1,4})\S* (?:Mobile\/\S+ )?Safari\//, 'Safari'],
];

const SYSTEMS: readonly (readonly [pattern: RegExp, name: string])[] = [
  [/\bAndroid\b/, 'Android'],
  [/\b(?:iPhone|iPad)\b/, 'iOS'],
  [/\bWindows\b/, 'Windows'],
  [/\bMac OS X\b/, 'macOS'],
  [/\bCrOS\b/, 'ChromeOS'],
  [/\bLinux\b/, 'Linux'],
];

const MAX_LENGTH = 60;

/** Describes the browser that sent a User-Agent header, for example as "Firefox 142 on Linux". */
export function browserNameOf(userAgent: string): string {
  const system = SYSTEMS.find(([pattern]) => pattern.test(userAgent))?.[1];
  const on = system === undefined ? '' : ` on ${system}`;
  for (const [pattern, name] of BROWSERS) {
    const version = pattern.exec(userAgent)?.[1];
    if (version !== undefined) return `${name} ${version}${on}`;
  }
  const text = userAgent.replaceAll(/[^ -~]+/g, ' ').trim();
  return text === '' ? 'Unknown browser' : text.slice(0, MAX_LENGTH);
}
