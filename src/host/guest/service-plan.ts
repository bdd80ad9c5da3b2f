import { z } from 'zod'
import { engineOfSecrets } from '../../protocol/storage-engines.ts'
import { HostInputError, parseJson, readSecrets } from './host-input.ts'

/**
 * The program that the guest runs. `forwardTo`: the loopback port that the guest's open port is forwarded to, where the
 * program does not open that port itself.
 */
export interface ServicePlan {
  readonly args: readonly string[]
  readonly env: Readonly<Record<string, string>>
  readonly forwardTo?: number
  /** The image's stand-in provider, in a rehearsal. */
  readonly standin?: StandinPlan
  /** Whether the program's output may be shown to the host. */
  readonly shown: boolean
}

/** What the host hands over besides the configuration, as text. */
export interface HostItems {
  readonly secrets?: string | undefined
  readonly standin?: string | undefined
}

/** A stand-in provider on loopback. */
export interface StandinPlan {
  readonly port: number
  /** The same answers over HTTPS, with evidence. */
  readonly tlsPort: number
  /** The release root and TLS key that the measured configuration names, as `StandinIdentity.kept`. */
  readonly identity: string
}

/** The guest's only open port. Plain HTTP and the link stay inside. */
export const OPEN_PORT = 443

const TLS_PORT = 8788
const HTTP_PORT = 8787
const CONNECTIONS_PER_SOURCE = '1024'

const modeSchema = z.object({
  service: z.object({
    mode: z.enum(['production', 'local']).default('production'),
    allow_simulated: z.boolean().default(false),
  }),
})

const port = z.int().min(1024).max(65_535)
const standinSchema = z.strictObject({ port, tls_port: port, identity: z.looseObject({}) })

/**
 * Plans the program for this measured configuration: in production mode a router that starts sealed, in local mode a
 * simulated one whose secrets the host supplies.
 * @throws HostInputError when the host supplies secrets in production, or a stand-in provider where the measured
 *   configuration allows no simulation
 */
export function planService(
  configuration: string,
  { secrets, standin }: HostItems = {},
): ServicePlan {
  const parsed = modeSchema.safeParse(parseJson(configuration))
  if (!parsed.success) throw new HostInputError('the configuration has no service of a known mode')
  const { mode, allow_simulated: rehearsal } = parsed.data.service
  if (mode === 'local') return planSimulated(configuration, secrets)
  const plan = planProduction(secrets)
  if (standin === undefined) return plan
  if (!rehearsal) throw new HostInputError('a stand-in provider needs service.allow_simulated')
  return { ...plan, standin: readStandin(standin) }
}

function readStandin(text: string): StandinPlan {
  const parsed = standinSchema.safeParse(parseJson(text))
  if (!parsed.success)
    throw new HostInputError('the description of the stand-in provider is malformed')
  const { port: plain, tls_port: tlsPort, identity } = parsed.data
  return { port: plain, tlsPort, identity: JSON.stringify(identity) }
}

function planProduction(hostSecrets: string | undefined): ServicePlan {
  if (hostSecrets !== undefined) {
    throw new HostInputError(
      'the host handed over secrets; in production mode a guest takes them by a document of its operator only',
    )
  }
  return {
    args: [
      'serve',
      '--sealed',
      '--https',
      `0.0.0.0:${OPEN_PORT}`,
      '--http',
      `127.0.0.1:${HTTP_PORT}`,
      '--data-disk',
      '/dev/cmr-data',
      '--volume',
      '/run/cmr/volume',
    ],
    env: { JSON_CONSOLE: 'true' },
    shown: true,
  }
}

function planSimulated(configuration: string, hostSecrets: string | undefined): ServicePlan {
  const secrets = readSecrets(hostSecrets, configuration)
  return {
    args: ['start'],
    env: {
      ...secrets,
      STORAGE: engineOfSecrets(secrets),
      PORT: String(HTTP_PORT),
      TLS_PORT: String(TLS_PORT),
      CONNECTIONS_PER_SOURCE,
    },
    forwardTo: TLS_PORT,
    // Its output contains the key of a first customer.
    shown: false,
  }
}
