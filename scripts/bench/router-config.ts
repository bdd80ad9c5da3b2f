import { BEHAVIOURS, EMBEDDING, TRANSCRIPTION } from './behaviours.ts'
import type { MockAddress } from './system.ts'

/** The size of the configuration beyond the routes that the benchmark calls. */
export interface ConfigSize {
  readonly furtherRoutes: number
}

const PINNED = 'pinned-'

/** The model key under which the router knows a behaviour of the mock. */
export function modelName(behaviour: string, pinned: boolean): string {
  return `${pinned ? PINNED : ''}${behaviour}`
}

/** A configuration with the mock as two providers: one without attestation, and one that is attested and pinned. */
export function benchConfig({ port, tlsPort, rootJwk }: MockAddress, size: ConfigSize): unknown {
  const further = Array.from({ length: size.furtherRoutes }, (_, index) =>
    route(`further-${index}`, 'direct', 'whole'),
  )
  return {
    service: { name: 'bench', mode: 'local', usd_eur: 0.86 },
    providers: {
      direct: { base_url: `http://127.0.0.1:${port}/v1`, attestation: { adapter: 'none' } },
      pinned: {
        base_url: `https://127.0.0.1:${tlsPort}/v1`,
        attestation: { adapter: 'envelope', root_key: rootJwk },
      },
    },
    routes: [
      ...further,
      ...BEHAVIOURS.flatMap((behaviour) => [
        route(modelName(behaviour, false), 'direct', behaviour),
        route(modelName(behaviour, true), 'pinned', behaviour),
      ]),
      {
        ...route(EMBEDDING, 'direct', EMBEDDING),
        type: 'embedding',
        pricing: { currency: 'eur', input_per_mtok: 0.02 },
      },
      {
        ...route(TRANSCRIPTION, 'direct', TRANSCRIPTION),
        type: 'transcription',
        pricing: { currency: 'eur', billing_unit: 'audio_minute', unit_amount: 0.006 },
      },
    ],
    plans: { standard: {} },
  }
}

function route(modelKey: string, provider: string, behaviour: string) {
  return {
    model_key: modelKey,
    provider,
    region: 'eu',
    upstream_model: behaviour,
    type: 'chat',
    pricing: { currency: 'eur', input_per_mtok: 0.6, output_per_mtok: 2.2 },
  }
}
