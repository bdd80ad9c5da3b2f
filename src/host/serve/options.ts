import { resolve } from 'node:path'
import { InvalidArgumentError, Option, type Command } from 'commander'
import type { DataDiskPlaces } from '../sealed/data-disk.ts'
import { parseListenAddress, type ListenAddress } from '../stack/listen-address.ts'

/** The options of `npm run serve`, from the command line or else from the environment. */
export interface ServeOptions {
  /** The command checks that it is present. */
  readonly config: string
  readonly stateDir: string
  readonly https: ListenAddress
  readonly http: ListenAddress
  /** Replaces `service.workers`. */
  readonly workers?: number
  readonly drainSeconds: number
  /** Per workerd process; by default as many as the open files allow. */
  readonly maxOpenRequests?: number
  /** Connections of one client to one worker; by default a quarter of the worker's capacity. */
  readonly connectionsPerSource?: number
  /** How long a client may leave data unread that waits for it; by default five minutes. */
  readonly unreadSeconds?: number
  /** Starts without secrets, which arrive later in a document of the operator. */
  readonly sealed?: boolean
  /** Strangers can read the console, so only allow-listed JSON lines are printed. */
  readonly jsonConsole?: boolean
  /** The guest's data disk, and the socket of PID 1, which opens it. */
  readonly dataDisk?: string
  readonly volume?: string
  /** Replaces `service.tls.chain_file`. */
  readonly tlsChain?: string
  /** The address for challenges of the certificate authority, over plain HTTP. */
  readonly acmeHttp: ListenAddress
}

/** In a guest, the device of its data disk and the socket of PID 1, which opens it. */
export function dataDiskPlaces({ dataDisk, volume }: ServeOptions): DataDiskPlaces | undefined {
  return dataDisk === undefined || volume === undefined ? undefined : { device: dataDisk, volume }
}

/** Adds the options of a serving router to a command. */
export function addServeOptions(command: Command): Command {
  return addGuestOptions(addLimits(command))
    .addOption(
      new Option('--config <file>', 'the configuration').env('ROUTER_CONFIG').argParser(absolute),
    )
    .addOption(stateDirOption())
    .addOption(
      listener(
        '--https',
        'HTTPS_ADDRESS',
        '0.0.0.0:8443',
        'where clients connect; a port alone is on loopback',
      ),
    )
    .addOption(listener('--http', 'HTTP_ADDRESS', '127.0.0.1:8080', 'plain HTTP, on loopback only'))
    .addOption(
      count(
        '--workers',
        'WORKERS',
        [1, 64],
        'workerd processes, in place of service.workers; for more than one not STORAGE=durable-object',
      ),
    )
    .addOption(
      count(
        '--drain-seconds',
        'DRAIN_SECONDS',
        [0, 3600],
        'how long running requests may take at the end',
      ).default(30),
    )
    .addOption(
      new Option('--sealed', 'start without secrets, and wait for a document of the operator').env(
        'SEALED',
      ),
    )
    .addOption(
      new Option('--tls-chain <file>', 'certificate chain for the exported CSR (PEM)')
        .env('TLS_CHAIN')
        .argParser(absolute),
    )
    .addOption(
      listener(
        '--acme-http',
        'ACME_HTTP_ADDRESS',
        '0.0.0.0:80',
        'where ACME challenges are answered',
      ),
    )
}

/** Adds the options for the limits of clients. */
function addLimits(command: Command): Command {
  return command
    .addOption(
      count(
        '--max-open-requests',
        'MAX_OPEN_REQUESTS',
        [1, 10_000],
        'open requests in one process (default: what the open files allow)',
      ),
    )
    .addOption(
      count(
        '--connections-per-source',
        'CONNECTIONS_PER_SOURCE',
        [1, 16_384],
        'connections of one address to one process (default: a quarter of what it carries)',
      ),
    )
    .addOption(
      count(
        '--unread-seconds',
        'UNREAD_SECONDS',
        [1, 86_400],
        'how long a client may take for what waits for it (default: 300)',
      ),
    )
}

/** Adds the options that the guest's own program passes. */
function addGuestOptions(command: Command): Command {
  return command
    .addOption(
      new Option(
        '--json-console',
        'print allow-listed JSON lines alone, for a console that strangers read',
      ).env('JSON_CONSOLE'),
    )
    .addOption(
      new Option('--data-disk <device>', 'data disk of a guest').env('DATA_DISK').hideHelp(),
    )
    .addOption(
      new Option('--volume <socket>', 'where PID 1 of a guest opens it').env('VOLUME').hideHelp(),
    )
}

function stateDirOption(): Option {
  return new Option('--state-dir <path>', 'storage, logs and public keys')
    .env('STATE_DIR')
    .default(resolve('.state'), '.state')
    .argParser(absolute)
}

function listener(flag: string, variable: string, standard: string, about: string): Option {
  return new Option(`${flag} <address>`, about)
    .env(variable)
    .default(parseAddress(standard), standard)
    .argParser(parseAddress)
}

function count(
  flag: string,
  variable: string,
  [least, most]: readonly [number, number],
  about: string,
): Option {
  return new Option(`${flag} <n>`, about).env(variable).argParser((text: string) => {
    const value = /^\d{1,5}$/.test(text) ? Number(text) : Number.NaN
    if (value >= least && value <= most) return value
    throw new InvalidArgumentError(`give a whole number from ${least} to ${most}`)
  })
}

function parseAddress(text: string): ListenAddress {
  const address = parseListenAddress(text)
  if (address !== undefined) return address
  throw new InvalidArgumentError('give <IP address>:<port>, such as 0.0.0.0:8443')
}

function absolute(path: string): string {
  return resolve(path)
}
