import { InvalidArgumentError, Option, type Command } from 'commander'
import { toBase64, toHex, type Bytes } from '../../protocol/bytes.ts'
import { sha256Hex } from '../../protocol/digest.ts'
import { parseListenAddress, type ListenAddress } from '../../host/stack/listen-address.ts'
import { namesUser } from '../../protocol/url-user.ts'
import { readLogPolicy } from '../../verify/transparency/log-policy.ts'
import { formatNoteKey, type NoteKey } from '../../verify/transparency/signed-note.ts'
import { checkTlogProof } from '../../verify/transparency/tlog-proof.ts'
import { requireWritable, writeDocument } from './documents.ts'
import { readJson, readWholeText, writeNew } from './files.ts'
import { appendEntry, renewProof, type AppendDeps } from './log/append-entry.ts'
import { auditLog, type AuditedLog } from './log/audit-log.ts'
import { keyOfType, signerOfType } from './log/keys-by-type.ts'
import { LogDirectory } from './log/log-directory.ts'
import { lockLog } from './log/log-lock.ts'
import { formatNoteSigner, noteSigner, type NoteSigner } from './log/note-signer.ts'
import {
  attachProof,
  logReader,
  readEntry,
  readPublished,
  readSigner,
  readTreeHead,
  requireSubject,
} from './log/log-files.ts'
import type { Witness } from './log/witness-client.ts'
import { serveWitness } from './log/witness-server.ts'
import { LogWitness } from './log/witness.ts'
import { ReleaseError } from './release-error.ts'
import { print, printed, wholeNumber } from './terminal.ts'

/** `release log …`: the public record of releases. */
export function addLogCommands(program: Command): void {
  const log = program
    .command('log')
    .description(
      'the public record of releases: an append-only log of static files (C2SP tlog-tiles)',
    )
  addKeygen(log)
  addVerifierKey(log)
  addAppend(log)
  addRenew(log)
  addCheck(log)
  addAudit(log)
  addWitness(log)
}

function addKeygen(log: Command): void {
  log
    .command('keygen')
    .description('make the key of a log or of a witness')
    .requiredOption(
      '--name <name>',
      'the origin of the log, or the name of the witness, such as router.example/releases',
    )
    .option('--witness', 'the key is for a witness')
    .requiredOption('--private <file>', 'private key to write, mode 0600')
    .action(async (options: { name: string; witness?: boolean; private: string }) => {
      const seed = crypto.getRandomValues(new Uint8Array(32))
      const signer = noteSigner(
        options.name,
        options.witness === true ? 'cosignature' : 'ed25519',
        seed,
      )
      await writeNew(options.private, formatNoteSigner(signer, seed), 0o600)
      printVerifierKey(signer)
    })
}

function addVerifierKey(log: Command): void {
  log
    .command('verifier-key')
    .description('print the verifier key of a log or of a witness again')
    .requiredOption('--key <file>', 'its private key')
    .action(async ({ key }: { key: string }) => printVerifierKey(await readSigner(key)))
}

function printVerifierKey({ key }: NoteSigner): void {
  print({ verifier_key: formatNoteKey(key) })
}

interface LogOptions {
  dir: string
  key: string
  witness?: readonly Witness[]
  quorum?: number
  out: string
  attach?: string
}

function withLog(command: Command): Command {
  return command
    .requiredOption('--dir <folder>', "the log's files, as a web server shows them")
    .requiredOption('--key <file>', "the log's private key")
    .option(
      '--witness <url and key>',
      'a witness to ask, "<url> <verifier key>", repeatable',
      witness,
    )
    .option('--quorum <n>', 'how many witnesses must cosign (default: all)', wholeNumber)
    .requiredOption('--out <file>', 'the proof to write (.tlog-proof)')
    .option('--attach <file>', 'the published trust bundle to put the proof into')
}

function addAppend(log: Command): void {
  withLog(
    log.command('append').argument('<entry>', 'a manifest or a trust bundle, as it is published'),
  )
    .description(
      'add a manifest or a trust bundle, have witnesses cosign, publish, write the proof',
    )
    .action(async (path: string, options: LogOptions) => {
      const entry = await readEntry(path)
      // Checked before anything is signed, because an entry cannot be removed from the log.
      if (options.attach !== undefined) await requireSubject(options.attach, entry)
      await withLock(options, async (logTools) => {
        await report(await appendEntry(entry, logTools), entry, options)
      })
    })
}

function addRenew(log: Command): void {
  withLog(log.command('renew').argument('<index>', 'number of the entry', indexNumber))
    .description('have witnesses cosign the log as it is now, and write a fresh proof of an entry')
    .action(async (index: number, options: LogOptions) => {
      if (options.attach !== undefined) await readPublished(options.attach)
      await withLock(options, async (logTools) => {
        const renewed = await renewProof(index, logTools)
        await report(renewed, await logTools.log.entry(index), options)
      })
    })
}

function addCheck(log: Command): void {
  log
    .command('check')
    .description('check offline that a document stands in the log')
    .argument('<entry>', 'the manifest or trust bundle')
    .requiredOption('--proof <file>', 'its proof')
    .requiredOption('--policy <file>', 'log, witnesses, quorum and largest age')
    .action(async (path: string, options: { proof: string; policy: string }) => {
      const policy = readLogPolicy(await readJson(options.policy))
      const proof = await readWholeText(options.proof)
      const now = Math.floor(Date.now() / 1_000)
      const found = checkTlogProof(proof, await readEntry(path), policy, now)
      print({ index: found.index, size: found.checkpoint.size, witnesses: found.witnesses })
    })
}

function addAudit(log: Command): void {
  log
    .command('audit')
    .description('read everything new in a log, and check that it still has all it had before')
    .argument('<prefix>', 'the folder or the address of the log')
    .option(
      '--log-key <key>',
      'its verifier key; without witnesses it may show a tree to you alone',
    )
    .addOption(
      new Option(
        '--policy <file>',
        'in place of the key: log, witnesses, quorum and largest age, as clients demand them',
      ).conflicts('logKey'),
    )
    .requiredOption('--state <file>', 'what was seen before; made at the first run')
    .action(async (prefix: string, options: AuditOptions) => {
      const known = await readTreeHead(options.state)
      const audit = await auditLog(logReader(prefix), await auditedLog(options), known)
      const { size, root } = audit.checkpoint
      const entries = audit.entries.map(async ({ index, bytes }) => ({
        index,
        bytes: bytes.length,
        sha256: await sha256Hex(bytes),
      }))
      await printed({
        size,
        root: toHex(root),
        ...(audit.witnesses && { witnesses: audit.witnesses }),
        new_entries: await Promise.all(entries),
      })
      // Last, because later audits do not report the entries of a stored tree again.
      await writeDocument(options.state, `${JSON.stringify({ size, root: toBase64(root) })}\n`)
    })
}

interface AuditOptions {
  readonly logKey?: string
  readonly policy?: string
  readonly state: string
}

async function auditedLog({ logKey, policy: path }: AuditOptions): Promise<AuditedLog> {
  if (logKey !== undefined) return { key: keyOfType(logKey, 'ed25519') }
  if (path === undefined) throw new ReleaseError('give --policy, or --log-key')
  const policy = readLogPolicy(await readJson(path))
  return { key: policy.log, witnessed: { policy, now: Math.floor(Date.now() / 1_000) } }
}

function addWitness(log: Command): void {
  log
    .command('witness')
    .description(
      'cosign the trees of logs, each only if it continues the last; runs until it is stopped',
    )
    .requiredOption('--key <file>', "the witness's private key")
    .requiredOption('--log-key <key>', 'verifier key of a log to watch, repeatable', logKeys)
    .requiredOption('--state <folder>', 'where the last tree of each log is kept')
    .addOption(
      new Option('--listen <address>', 'where to listen')
        .argParser(listenAddress)
        .default({ host: '127.0.0.1', port: 7380 }, '127.0.0.1:7380'),
    )
    .action(
      async (options: { key: string; logKey: NoteKey[]; state: string; listen: ListenAddress }) => {
        const cosigner = new LogWitness({
          signer: await signerOfType(options.key, 'cosignature'),
          logs: options.logKey,
          stateDir: options.state,
          now: Date.now,
        })
        const release = lockLog(options.key)
        try {
          const server = await serveWitness(cosigner, options.listen)
          const address = server.address()
          print({ listening: typeof address === 'object' ? address?.port : address })
          await new Promise<void>((resolve) => {
            for (const signal of ['SIGINT', 'SIGTERM'] as const)
              process.once(signal, () => resolve())
          })
          server.close()
        } finally {
          release()
        }
      },
    )
}

async function deps({
  dir,
  key,
  witness: witnesses = [],
  quorum,
}: LogOptions): Promise<AppendDeps> {
  if (quorum !== undefined && quorum > witnesses.length) {
    throw new ReleaseError(
      `--quorum ${quorum} is more than the ${witnesses.length} witnesses given`,
    )
  }
  // Two signatures of one witness do not make a quorum of two.
  if (new Set(witnesses.map(({ key: own }) => own.publicKey.join())).size !== witnesses.length) {
    throw new ReleaseError('--witness names one witness twice')
  }
  const log = new LogDirectory(dir, await signerOfType(key, 'ed25519'))
  return { log, witnesses, quorum: quorum ?? witnesses.length, now: Date.now }
}

/** Runs `work` while this process alone may sign with the log's key. */
async function withLock(
  options: LogOptions,
  work: (logTools: AppendDeps) => Promise<void>,
): Promise<void> {
  const logTools = await deps(options)
  // Checked before anything is signed, because an entry cannot be removed from the log.
  await requireWritable(options.out)
  const release = lockLog(options.key)
  try {
    await work(logTools)
  } finally {
    release()
  }
}

async function report(
  appended: Awaited<ReturnType<typeof appendEntry>>,
  entry: Bytes,
  { out, attach }: LogOptions,
): Promise<void> {
  await writeDocument(out, appended.proof)
  if (attach !== undefined) await attachProof(attach, entry, appended.proof)
  const { index, size, missing } = appended
  print({ index, size, proof: out, ...(missing.length > 0 && { missing_witnesses: missing }) })
}

/** Commander would quote what it is told to be invalid, and an address may have a password in it. */
function witness(text: string, before: readonly Witness[] = []): Witness[] {
  const [url = '', key = '', ...rest] = text.trim().split(/\s+/)
  if (!/^https?:\/\//.test(url) || !URL.canParse(url) || key === '' || rest.length > 0) {
    throw new ReleaseError('--witness is "<url> <verifier key>", in one argument')
  }
  if (namesUser(new URL(url))) {
    throw new ReleaseError('leave user name and password out of the address of a witness')
  }
  return [...before, { url, key: keyOfType(key, 'cosignature') }]
}

function logKeys(text: string, before: readonly NoteKey[] = []): NoteKey[] {
  return [...before, keyOfType(text, 'ed25519')]
}

function indexNumber(text: string): number {
  if (/^\d{1,9}$/.test(text)) return Number(text)
  throw new InvalidArgumentError('give the number of an entry, from 0 on')
}

function listenAddress(text: string): ListenAddress {
  const address = parseListenAddress(text)
  if (address === undefined) throw new InvalidArgumentError('give host:port')
  return address
}
