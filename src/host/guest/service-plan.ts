import { z } from 'zod'
import { engineOfSecrets } from '../../protocol/storage-engines.ts'
import { HostInputError, readSecrets } from './host-input.ts'

/**
 * The guest's program, and the loopback port that its open port is forwarded to, where the program does not open that
 * port itself.
 */
export interface ServicePlan {
  readonly args: readonly string[]
  readonly env: Readonly<Record<string, string>>
  readonly forwardTo?: number
  /** Whether what it prints may be shown to the host. */
  readonly shown: boolean
}

/** The guest's only open port. Plain HTTP and the link stay inside. */
export const OPEN_PORT = 443

const TLS_PORT = 8788
const HTTP_PORT = 8787
const CONNECTIONS_PER_SOURCE = '1024'

const modeSchema = z.object({
  service: z.object({ mode: z.enum(['production', 'local']).default('production') }),
})

/**
 * The program for this measured configuration: in production mode a router that starts sealed, in local mode a
 * simulated one whose secrets the host supplies.
 * @throws HostInputError when the host supplies secrets in production
 */
export function planService(configuration: string, hostSecrets: string | undefined): ServicePlan {
  const parsed = modeSchema.safeParse(parseJson(configuration))
  if (!parsed.success) throw new HostInputError('the configuration has no service of a known mode')
  return parsed.data.service.mode === 'production'
    ? planProduction(hostSecrets)
    : planSimulated(configuration, hostSecrets)
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
    // It welcomes its user with the key of a first customer.
    shown: false,
  }
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
