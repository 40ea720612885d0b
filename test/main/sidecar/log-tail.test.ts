import { describe, expect, test } from 'vitest';
import { LogTail, safeLogLine } from '../../../src/main/sidecar/log-tail.ts';
import { measureCpu } from '../../support/work.ts';

describe('the log tail (R-EMB-09)', () => {
  test.each([
    [
      '[GIN] 2026/06/03 - 14:02:00 | 200 |    1.2345ms |       127.0.0.1 | POST     "/api/embed"',
      '2026/06/03 14:02:00 200 1.2345ms POST /api/embed',
    ],
    [
      'time=2026-06-03T14:02:00.000Z level=INFO source=sched.go:714 msg="new model will fit" prompt="my diary" model=/x',
      '2026-06-03T14:02:00.000Z INFO sched.go:714 "new model will fit"',
    ],
    [
      'Error: listen tcp 127.0.0.1:4711: bind: address already in use',
      'Error: listen tcp 127.0.0.1:4711: bind: address already in use',
    ],
    [
      'panic: runtime error: index out of range [5] with length 3 [recovered]',
      'panic: runtime error: index out of range [5] with length 3',
    ],
    ['fatal error: runtime: out of memory', 'fatal error: runtime: out of memory'],
    // Text that Go's runtime did not write may repeat a request.
    ['panic: cannot embed "my diary"', 'panic (message omitted)'],
    ['Error: my diary: bind: address already in use', 'Error (message omitted)'],
    ['Error: ghp_16C7e42F292c6912E7710c838347Ae178B4a is no key', 'Error (message omitted)'],
  ])('shows %s', (line, shown) => {
    expect(safeLogLine(line)).toBe(shown);
  });

  test.each([
    'runner reads my diary',
    '[GIN] 2026/06/03 - 14:02:00 | 200 | 1ms | 127.0.0.1 | GET "/x?q=my diary"',
    'prompt="time=1 level=INFO source=a.go:1 msg=x"',
    'time=1 level=INFO source=a.go:1 msg="ghp_16C7e42F292c6912E7710c838347Ae178B4a"',
    '',
  ])('leaves out %s', (line) => {
    expect(safeLogLine(line)).toBeUndefined();
  });

  test('is limited, and detects a flood', () => {
    let now = 0;
    const log = new LogTail(() => now);
    const line = (at: number): string => `time=${at} level=INFO source=a.go:1 msg="x"\n`;
    for (let at = 0; at < 1000; at += 1) expect(log.append(Buffer.from(`${line(at)}diary\n`))).toBe(true);
    expect(log.lines).toHaveLength(41);
    expect(log.lines.at(0)).toContain('960');
    expect(log.lines.at(-1)).toBe('(and 1000 other lines)');
    const much = Buffer.alloc(1024 * 1024, 'x');
    for (let time = 0; time < 100; time += 1) {
      now += 10_000;
      expect(log.append(much)).toBe(true);
    }
    expect(Array.from({ length: 9 }, () => log.append(much)).at(-1)).toBe(false);
  });

  test.each(['', 'x', 'time=1 level=I source=a.go:1 msg=x'])(
    'costs little until a flood is detected, also with lines as short as “%s” (R-EMB-08)',
    (line) => {
      const log = new LogTail(() => 0);
      const chunk = Buffer.alloc(64 * 1024, `${line}\n`);
      const work = measureCpu(() => {
        while (log.append(chunk));
      });
      expect(work).toBeLessThan(1000);
    },
  );
});
