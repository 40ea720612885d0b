import { once } from 'node:events';
import { connect } from 'node:net';

const WATCHER = 'org.kde.StatusNotifierWatcher';
const BUS = 'org.freedesktop.DBus';

/** Owns the D-Bus name of a tray host until it is disposed, so that Electron believes that the desktop shows tray icons. */
export async function aTrayHost(): Promise<Disposable> {
  const path = /unix:path=([^,]+)/.exec(process.env['DBUS_SESSION_BUS_ADDRESS'] ?? '')?.[1];
  if (path === undefined) throw new Error('DBUS_SESSION_BUS_ADDRESS names no session bus.');
  const socket = connect(path);
  await once(socket, 'connect');
  // The bus closes the connection if it refuses the client.
  socket.once('close', () => socket.emit('error', new Error('The bus closed the connection.')));
  const user = Buffer.from(String(process.getuid?.() ?? 0)).toString('hex');
  socket.write(`\0AUTH EXTERNAL ${user}\r\n`);
  const [answer] = (await once(socket, 'data')) as [Buffer];
  if (!answer.toString().startsWith('OK')) throw new Error(`The bus refused the client: ${answer.toString()}`);
  socket.write('BEGIN\r\n');
  socket.write(call(1, 'Hello', '', Buffer.alloc(0)));
  const flags = Buffer.alloc(4);
  socket.write(call(2, 'RequestName', 'su', Buffer.concat([text(WATCHER), padding(text(WATCHER).length, 4), flags])));
  // The bus answers both calls in order. Other calls to the name get no answer.
  await once(socket, 'data');
  await new Promise((resolve) => setTimeout(resolve, 200));
  return {
    [Symbol.dispose]() {
      socket.removeAllListeners('close');
      socket.destroy();
    },
  };
}

function call(serial: number, member: string, signature: string, body: Buffer): Buffer {
  const fields = [
    field(1, 'o', text('/org/freedesktop/DBus')),
    field(2, 's', text(BUS)),
    field(3, 's', text(member)),
    field(6, 's', text(BUS)),
    ...(signature === '' ? [] : [field(8, 'g', Buffer.from(`${String.fromCharCode(signature.length)}${signature}\0`))]),
  ];
  const all = fields.reduce((sum, one) => Buffer.concat([sum, padding(sum.length, 8), one]), Buffer.alloc(0));
  const head = Buffer.from(['l'.charCodeAt(0), 1, 0, 1]);
  const begin = Buffer.concat([head, number(body.length), number(serial), number(all.length), all]);
  return Buffer.concat([begin, padding(begin.length, 8), body]);
}

const field = (code: number, type: string, value: Buffer): Buffer =>
  Buffer.concat([Buffer.from([code, 1, type.charCodeAt(0), 0]), value]);
const text = (value: string): Buffer => Buffer.concat([number(Buffer.byteLength(value)), Buffer.from(`${value}\0`)]);
const padding = (length: number, to: number): Buffer => Buffer.alloc((to - (length % to)) % to);

function number(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32LE(value);
  return bytes;
}
