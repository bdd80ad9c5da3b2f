import { execFile } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { STORAGE_ENGINES } from '../../protocol/storage-engines.ts'
import { RawText, capnpText, type CapnpValue } from './capnp-text.ts'
import { STORE_KEY } from './durable-object-file.ts'
import { certificatesOf } from './database-tls.ts'
import type { LinkEnd } from './link-binding.ts'
import { LINK_HOST, type KeyPair } from './link-certificates.ts'
import { SealedText } from './sealed-text.ts'
import type { ProviderCalls, StorageSettings } from './settings.ts'

/** The parameters of a workerd process. */
export interface WorkerdPlan {
  /** The bundled worker, an ES module. */
  readonly script: string
  readonly port: number
  readonly tlsPort: number
  /** Whether to open one more HTTP socket on loopback, for the supervisor's probes. */
  readonly probe?: boolean
  /**
   * Opens one more socket, on which the supervisor starts a drain; this token proves that the caller is the supervisor.
   */
  readonly drainToken?: string
  readonly tls: KeyPair
  readonly link: LinkEnd
  /** The link to the ledger process, for the engine that has one. */
  readonly ledger?: LinkEnd
  readonly storage: StorageSettings
  /**
   * The only authorities (PEM) trusted for the database's certificate; absent: the database's address says whether it
   * is verified.
   */
  readonly databaseCa?: string | undefined
  /** The directory of the Durable Objects' files. */
  readonly storageDir: string
  /** Maximum number of concurrent requests of keyed endpoints. */
  readonly maxOpenRequests: number
  /** Who calls providers without attestation; the daemon calls all others. */
  readonly providerCalls: ProviderCalls
  /** The operator's console, an HTML page; without it the worker has no console. */
  readonly consolePage?: string | undefined
  /** Whether webhooks may connect to private addresses. */
  readonly privateWebhooks: boolean
}

const workerd: { readonly default: string } = createRequire(import.meta.url)('workerd')

/** Path of the native workerd for this machine. */
export const WORKERD = workerd.default

const COMPATIBILITY_DATE = '2026-11-17'

/**
 * Without this flag, error objects that the platform keeps would keep their requests in memory (src/worker/index.ts).
 */
const V8_FLAGS = ['--no-async-stack-traces']

/**
 * Compiles the binary configuration for `workerd serve --binary -`. workerd's own compiler builds it from a text in a
 * temporary directory; private keys and passwords are inserted afterwards, in memory.
 */
export async function compileWorkerdConfig(plan: WorkerdPlan): Promise<Buffer> {
  const sealed = new SealedText()
  const text = configText(plan, (secret) => sealed.seal(secret))
  const directory = await mkdtemp(join(tmpdir(), 'cmr-workerd-'))
  try {
    await writeFile(join(directory, 'worker.js'), plan.script)
    await writeFile(join(directory, 'config.capnp'), text)
    await writeFile(join(directory, 'console.html'), plan.consolePage ?? '')
    const args = ['compile', '--config-only', join(directory, 'config.capnp')]
    const { stdout } = await promisify(execFile)(WORKERD, args, {
      encoding: 'buffer',
      maxBuffer: 64 * 1024 * 1024,
    })
    return sealed.unseal(stdout)
  } finally {
    await rm(directory, { recursive: true, force: true })
  }
}

type Seal = (secret: string) => string

function configText(plan: WorkerdPlan, seal: Seal): string {
  const config = {
    services: [
      { name: 'router', worker: workerService(plan, seal) },
      { name: 'link', external: linkService(plan.link, seal) },
      ...(plan.ledger === undefined
        ? []
        : [{ name: 'ledger', external: linkService(plan.ledger, seal) }]),
      { name: 'storage', disk: { path: plan.storageDir, writable: true } },
      { name: 'internet', network: outbound(plan) },
      { name: 'webhooks', network: webhookNetwork(plan) },
      ...databaseNetwork(plan),
    ],
    sockets: [
      { name: 'http', address: `127.0.0.1:${plan.port}`, http: {}, service: 'router' },
      {
        name: 'https',
        address: `127.0.0.1:${plan.tlsPort}`,
        https: {
          options: {},
          tlsOptions: { keypair: keypair(plan.tls, seal), minVersion: new RawText('tls1Dot2') },
        },
        service: 'router',
      },
      ...(plan.probe === true
        ? [{ name: 'probe', address: '127.0.0.1:0', http: {}, service: 'router' }]
        : []),
      ...(plan.drainToken === undefined
        ? []
        : [
            {
              name: 'drain',
              address: '127.0.0.1:0',
              http: {},
              service: { name: 'router', entrypoint: 'drain' },
            },
          ]),
    ],
    v8Flags: V8_FLAGS,
  }
  const schema = 'using Workerd = import "/workerd/workerd.capnp";'
  return `${schema}\nconst config :Workerd.Config = ${capnpText(config)};\n`
}

function workerService(plan: WorkerdPlan, seal: Seal): CapnpValue {
  return {
    modules: [{ name: 'worker.js', esModule: new RawText('embed "worker.js"') }],
    compatibilityDate: COMPATIBILITY_DATE,
    bindings: [
      { name: 'LINK', service: 'link' },
      { name: 'LINK_TAKES_MESSAGES', json: 'true' },
      ...(plan.providerCalls === 'daemon' ? [{ name: 'DAEMON_CARRIES', text: 'all' }] : []),
      ...(plan.ledger === undefined ? [] : [{ name: 'LEDGER', service: 'ledger' }]),
      { name: 'WEBHOOKS', service: 'webhooks' },
      { name: 'STORAGE', text: plan.storage.engine },
      // The supervisor redirects the console to a file (`startWorker`).
      { name: 'CONSOLE_IS_FILE', json: 'true' },
      // The flag is among `V8_FLAGS`.
      { name: 'NO_ASYNC_STACKS', json: 'true' },
      { name: 'MAX_OPEN_REQUESTS', text: String(plan.maxOpenRequests) },
      ...(plan.drainToken === undefined
        ? []
        : [{ name: 'DRAIN_TOKEN', text: seal(plan.drainToken) }]),
      ...(plan.consolePage === undefined
        ? []
        : [{ name: 'CONSOLE_PAGE', text: new RawText('embed "console.html"') }]),
      { name: 'STORE', durableObjectNamespace: 'StoreObject' },
      // One process is one isolate, and the object is not evicted.
      { name: 'STORE_IS_LOCAL', json: 'true' },
      { name: 'CHUNKS', durableObjectNamespace: 'ChunkObject' },
      { name: 'PIPES', service: { name: 'router', entrypoint: 'pipes' } },
      { name: 'POSTGRES', durableObjectNamespace: 'PostgresPool' },
      ...storageSecret(plan.storage, seal),
      ...databaseNetwork(plan).map(({ name }) => ({ name: 'DATABASE', service: name })),
    ],
    durableObjectNamespaces: [
      {
        className: 'StoreObject',
        uniqueKey: STORE_KEY,
        enableSql: true,
        preventEviction: true,
      },
      {
        className: 'ChunkObject',
        uniqueKey: 'cmr-chunks',
        enableSql: true,
        preventEviction: true,
      },
      { className: 'PostgresPool', uniqueKey: 'cmr-postgres-pool', enableSql: true },
    ],
    // With a shared engine no object stores anything, and several processes cannot share a directory.
    durableObjectStorage: STORAGE_ENGINES[plan.storage.engine].shared
      ? { inMemory: new RawText('void') }
      : { localDisk: 'storage' },
  }
}

function storageSecret({ engine, secret }: StorageSettings, seal: Seal): CapnpValue[] {
  const name = STORAGE_ENGINES[engine].secret
  return name === undefined || secret === undefined ? [] : [{ name, text: seal(secret) }]
}

/** A process on this host, reached over TLS 1.3 that trusts one certificate and presents one. */
function linkService(link: LinkEnd, seal: Seal): CapnpValue {
  return {
    address: `127.0.0.1:${link.port}`,
    https: {
      options: {},
      certificateHost: link.host ?? LINK_HOST,
      tlsOptions: {
        keypair: keypair(link.worker, seal),
        trustedCertificates: [link.serverCertPem],
        minVersion: new RawText('tls1Dot3'),
      },
    },
  }
}

/** The network of a database whose certificate is verified only against the operator's own authorities. */
function databaseNetwork({ storage, databaseCa }: WorkerdPlan) {
  if (databaseCa === undefined || !hasServer(storage)) return []
  const tlsOptions = {
    trustedCertificates: certificatesOf(databaseCa),
    trustBrowserCas: false,
    minVersion: new RawText('tls1Dot2'),
  }
  return [{ name: 'database', network: { allow: ['public', 'private'], tlsOptions } }]
}

function hasServer({ engine }: StorageSettings): boolean {
  return STORAGE_ENGINES[engine].keeper === 'server'
}

function outbound(plan: WorkerdPlan): CapnpValue {
  const leadsToDatabase = hasServer(plan.storage) && plan.databaseCa === undefined
  const isUsed = plan.providerCalls === 'worker' || leadsToDatabase
  return {
    allow: isUsed ? ['public', 'private'] : [],
    tlsOptions: { trustBrowserCas: true },
  }
}

/**
 * Webhooks connect only to public addresses, whatever a name resolves to; those of a local stack may also connect to
 * private ones, such as its own machine.
 */
function webhookNetwork({ privateWebhooks }: WorkerdPlan): CapnpValue {
  return {
    allow: privateWebhooks ? ['public', 'private'] : ['public'],
    tlsOptions: { trustBrowserCas: true },
  }
}

function keypair(pair: KeyPair, seal: Seal): CapnpValue {
  return { privateKey: seal(pair.keyPem), certificateChain: pair.certPem }
}
