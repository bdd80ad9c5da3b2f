import { z } from 'zod'
import { pricingSchema, ROUTE_TYPES } from '../../protocol/config.ts'
import { providerProofSchema, type ProviderProof } from '../../protocol/provider-proof.ts'
import type { AdminOperation } from '../auth/admin-token.ts'
import { json } from '../http/reply.ts'
import type { Route } from '../provider/route.ts'
import { asAdmin } from './as-admin.ts'

const proofSchema = providerProofSchema
  .pick({
    adapter: true,
    reason: true,
    verified_at: true,
    expires_at: true,
    attestation_strength: true,
    evidence_sha256: true,
  })
  .extend({
    state: z
      .enum([...providerProofSchema.shape.state.options, 'unknown'])
      .describe('`unknown`: the daemon does not answer.'),
  })

const routeSchema = z.looseObject({
  route: z.string(),
  model_key: z.string(),
  provider: z.string(),
  region: z.string().nullable(),
  state: z.enum(['closed', 'open', 'half_open']),
  errors: z.int(),
  last_failure: z.string().nullable(),
  retry_at: z.iso.datetime().nullable(),
  latency_ms: z.int().nullable(),
  type: z.enum(ROUTE_TYPES),
  pricing: pricingSchema.nullable(),
  proof: proofSchema,
})

export const ROUTES_OPERATION: AdminOperation = {
  summary: 'Show the routes: health, price, and the proof of their providers',
  tag: 'Admin',
  scope: 'read',
  answer: {
    'application/json': {
      name: 'RouteHealthList',
      schema: z.object({ data: z.array(routeSchema) }),
    },
  },
  errors: [],
}

/**
 * GET /admin/routes: the health of routes as this isolate sees it, their prices, and the verification of their providers.
 */
export const listRoutes = asAdmin(async (_request, { health, catalogue, link, now }) => {
  const proofs = await link.providers().catch(() => undefined)
  const byId = new Map(catalogue.routes.map((route) => [route.id, route]))
  const data = health.snapshot(now(), catalogue.routes).map((status) => {
    const route = byId.get(status.route)
    return { ...status, ...(route && { ...termsOf(route), proof: proofOf(route, proofs) }) }
  })
  return json({ data })
})

function termsOf({ config }: Route) {
  return { type: config.type, pricing: config.pricing ?? null }
}

const UNKNOWN = {
  reason: null,
  verified_at: null,
  expires_at: null,
  attestation_strength: null,
  evidence_sha256: null,
}

function proofOf(
  { provider }: Route,
  proofs: readonly ProviderProof[] | undefined,
): z.output<typeof proofSchema> {
  const proof = proofs?.find((one) => one.provider === provider.name)
  if (proof !== undefined) return proofSchema.parse(proof)
  return { ...UNKNOWN, adapter: provider.adapter, state: proofs ? 'pending' : 'unknown' }
}
