import {
  chmodSync,
  copyFileSync,
  globSync,
  lstatSync,
  mkdirSync,
  readFileSync,
  realpathSync,
  readdirSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'

/** The libraries that Node, workerd and mke2fs are linked with, and those that the C library loads by name. */
const LIBRARIES = [
  'usr/lib64/ld-linux-x86-64.so.2',
  ...[
    'libblkid.so.1',
    'libc.so.6',
    'libcom_err.so.2',
    'libdl.so.2',
    'libe2p.so.2',
    'libext2fs.so.2',
    'libgcc_s.so.1',
    'libm.so.6',
    'libnss_dns.so.2',
    'libnss_files.so.2',
    'libpthread.so.0',
    'libresolv.so.2',
    'librt.so.1',
    'libstdc++.so.6',
    'libuuid.so.1',
  ].map((name) => `usr/lib/x86_64-linux-gnu/${name}`),
]

/** Creates the file system of a new data disk; run by PID 1. */
const FORMATTER = 'usr/sbin/mke2fs'

/** The program with which the supervisor starts each process under its own account. */
export const RUN_AS = 'usr/bin/run-as'

/** Mount points; PID 1 fills them. */
const EMPTY_DIRECTORIES = ['dev', 'proc', 'run', 'sys/kernel/config', 'tmp', 'var/lib/cmr']

const LINKS: Readonly<Record<string, string>> = {
  lib: 'usr/lib',
  lib64: 'usr/lib64',
  'etc/resolv.conf': '/run/resolv.conf',
}

const accounts = [
  { name: 'root', id: 0 },
  { name: 'supervisor', id: 10_001 },
  { name: 'daemon', id: 10_002 },
  { name: 'worker', id: 10_003 },
]

const FILES: Readonly<Record<string, string>> = {
  'etc/passwd': accounts
    .map(({ name, id }) => `${name}:x:${id}:${id}::/tmp:/nonexistent\n`)
    .join(''),
  'etc/group': accounts.map(({ name, id }) => `${name}:x:${id}:\n`).join(''),
  'etc/hosts': '127.0.0.1 localhost\n',
  'etc/nsswitch.conf': 'passwd: files\ngroup: files\nhosts: files dns\n',
}

const AUTHORITIES = 'usr/share/ca-certificates/mozilla'

export interface RootPlan {
  /** The directory of the root; its previous content is deleted. */
  readonly root: string
  /** Where Debian's packages were unpacked. */
  readonly debian: string
  /** Puts the application and Node into the root. */
  readonly makeApp: (root: string) => Promise<void>
  /** The content of `RUN_AS`. */
  readonly runAs: Uint8Array
}

/**
 * Makes the guest's root: the application, Node, the libraries that they need, two small programs for accounts and for
 * the data disk, and no other program.
 */
export async function makeRootTree({ root, debian, makeApp, runAs }: RootPlan): Promise<void> {
  rmSync(root, { recursive: true, force: true })
  mkdirSync(root, { recursive: true })
  await makeApp(root)
  for (const path of EMPTY_DIRECTORIES) mkdirSync(join(root, path), { recursive: true })
  for (const path of [...LIBRARIES, FORMATTER]) copyRunnable(debian, root, path)
  mkdirSync(dirname(join(root, RUN_AS)), { recursive: true })
  writeFileSync(join(root, RUN_AS), runAs, { mode: 0o755 })
  for (const [path, text] of Object.entries(FILES)) writeInto(root, path, text)
  for (const [path, target] of Object.entries(LINKS)) symlinkSync(target, join(root, path))
  const names = globSync(`${AUTHORITIES}/*.crt`, { cwd: debian }).toSorted()
  const authorities = names.map((name) => readFileSync(join(debian, name), 'utf8'))
  writeInto(root, 'etc/ssl/certs/ca-certificates.crt', authorities.join(''))
  plainModes(root)
}

/**
 * Debian's libraries are symbolic links to files with a version in their name; copies the file under the name of the
 * link.
 */
function copyRunnable(debian: string, root: string, path: string): void {
  mkdirSync(dirname(join(root, path)), { recursive: true })
  copyFileSync(realpathSync(join(debian, path)), join(root, path))
  chmodSync(join(root, path), 0o755)
}

function writeInto(root: string, path: string, text: string): void {
  mkdirSync(dirname(join(root, path)), { recursive: true })
  writeFileSync(join(root, path), text)
}

/** Sets one mode for directories and programs and one for other files, whatever the building machine's umask. */
function plainModes(path: string): void {
  const status = lstatSync(path)
  if (status.isSymbolicLink()) return
  const runs = status.isDirectory() || (status.mode & 0o100) !== 0
  chmodSync(path, runs ? 0o755 : 0o644)
  if (status.isDirectory()) for (const name of readdirSync(path)) plainModes(join(path, name))
}
