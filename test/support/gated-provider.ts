import { content, DONE, EVENT_STREAM, ROLE, sound, STOP, usageFrame } from '../faults/answers.ts'
import { startFaultProvider } from './fault-provider.ts'
import { localConfig } from './local-config.ts'

/** The model that this provider has. */
export const GATED = 'gated'

/** A provider whose answers wait until the test lets them go, so that requests stay open side by side for as long as it needs. */
export interface GatedProvider {
  /** The given configuration, or the local one, with a route to this provider. */
  readonly config: object
  /** How often it was asked since it was closed the last time. */
  asked(): number
  /** From now on answers wait. */
  close(): void
  /** Those that wait go out, and those to come do not wait. */
  open(): void
  stop(): Promise<void>
}

/**
 * @param local the configuration to which the route is added
 * @param begins whether streams begin at once, so that only the rest of them waits
 */
export async function startGatedProvider(
  local = localConfig(),
  begins = false,
): Promise<GatedProvider> {
  let gate = Promise.withResolvers<void>()
  const provider = await startFaultProvider(() => async (call) => {
    const { wire } = call
    const begun = begins && call.stream
    if (begun) wire.head(200, EVENT_STREAM)
    if (begun) wire.send(ROLE + content('Hello '))
    await gate.promise
    if (!begun) return sound(call)
    wire.send(content('from the first.') + STOP + usageFrame() + DONE)
    wire.end()
  })
  let before = 0
  const asked = () => provider.calls(GATED).length - before
  return {
    config: withRoute(local, provider.port),
    asked,
    close: () => {
      gate.resolve()
      gate = Promise.withResolvers<void>()
      before = provider.calls(GATED).length
    },
    open: () => gate.resolve(),
    stop: () => provider.close(),
  }
}

function withRoute(local: ReturnType<typeof localConfig>, port: number): object {
  const base_url = `http://127.0.0.1:${port}/v1`
  const route = {
    model_key: GATED,
    provider: 'gatekeeper',
    upstream_model: GATED,
    type: 'chat',
    pricing: { currency: 'eur', input_per_mtok: 1, output_per_mtok: 2 },
  }
  return {
    ...local,
    providers: {
      ...local.providers,
      gatekeeper: { base_url, attestation: { adapter: 'none' } },
    },
    routes: [...local.routes, route],
  }
}

/**
 * Lets the answers go once so many of these requests have been answered, which are those that do not reach the provider; where
 * fewer are, after twenty seconds.
 */
export async function openedAfter(
  provider: GatedProvider,
  count: number,
  requests: readonly Promise<Response>[],
): Promise<readonly Response[]> {
  let answered = 0
  const timer = setTimeout(() => provider.open(), HELD_AT_MOST_MS)
  const note = (answer: Response) => {
    answered += 1
    if (answered === count) provider.open()
    return answer
  }
  try {
    return await Promise.all(requests.map((request) => request.then(note)))
  } finally {
    clearTimeout(timer)
    provider.open()
  }
}

const HELD_AT_MOST_MS = 20_000
