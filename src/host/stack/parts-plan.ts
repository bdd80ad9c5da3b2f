import type { FromDaemon, Platform } from '../../protocol/boot.ts'
import type { Mode } from '../../protocol/config.ts'
import type { Fronts } from './fronts.ts'
import type { LinkCertificates } from './link-certificates.ts'
import type { RouterConfigFile } from './router-config.ts'
import type { Settings } from './settings.ts'
import type { StateDir } from './state-dir.ts'

/** The plan of the parts of one stack. */
export interface PartsPlan {
  readonly settings: Pick<Settings, 'storage' | 'maxOpenRequests' | 'providerCalls'>
  /** The mode of the program; no configuration changes it. */
  readonly mode: Mode
  readonly platform: Platform
  /** The address at which clients reach a local stack; null in production. */
  readonly ownUrl: string | null
  /** The listeners between clients and the workers; absent where another program runs the worker. */
  readonly fronts?: Pick<Fronts, 'of'>
  /** Worker processes, 1 by default. */
  readonly workers?: number
  /** Carriers, the threads of the daemon that carry the workers' calls; by default its main thread does. */
  readonly carriers?: number
  /** Whether each worker has a socket of its own for the supervisor's probes. */
  readonly probe?: boolean
  /** Values of the configuration's variables that are not in the environment. */
  readonly secrets?: Readonly<Record<string, string>>
  readonly state: StateDir
  readonly config: RouterConfigFile
  /** Null: the router is sealed. */
  readonly adminToken: string | null
  readonly link: LinkCertificates
  /** The bundled worker. */
  readonly bundlePath: string
  /** Messages of the daemon after it is ready. */
  readonly onDaemonMessage: (message: FromDaemon) => void
  /** Called each time the daemon's process has ended. */
  readonly onDaemonEnd?: () => void
}

/** The secrets in a document of the operator. */
export interface GivenSecrets {
  readonly adminToken: string
  readonly secrets: Readonly<Record<string, string>>
  readonly storage: Settings['storage']
}

/** A configuration and its secrets, which the daemon is asked to put into effect. */
export interface OfferedConfig {
  readonly config: RouterConfigFile
  readonly secrets: Readonly<Record<string, string>>
  /** Null: the router is sealed. */
  readonly adminToken: string | null
}
