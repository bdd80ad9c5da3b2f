import { z } from 'zod'
import { pricingSchema, ROUTE_TYPES } from '../../protocol/config.ts'
import { EFFORTS } from '../../protocol/effort.ts'
import { providerProofSchema } from '../../protocol/provider-proof.ts'
import type { Operation } from '../http/operation.ts'
import { MODEL_PARAMETERS } from './handler.ts'

const efforts = z.array(z.enum(EFFORTS))

/** The `service` block of a detailed entry (docs/models.md). */
const details = z.looseObject({
  model_key: z.string(),
  route_kind: z.enum(['logical', 'region', 'provider', 'concrete']),
  region: z.string().optional(),
  provider: z.string().optional(),
  type: z.enum(ROUTE_TYPES),
  attestation: z.object({
    attested: z.boolean().describe('Whether every route behind the entry is attested.'),
    adapters: z.array(z.string()).describe('The kinds of evidence.'),
    proofs: z
      .array(
        z.object({
          route: z.string().describe('The concrete route.'),
          kind: z.string().describe('The kind of evidence.'),
          state: providerProofSchema.shape.state,
          strength: z.string().nullable(),
          age_seconds: z.int().nullable().describe('Since the evidence was verified.'),
          expires_at: z.string().nullable(),
        }),
      )
      .nullish()
      .describe(
        'What is currently proven of each route that needs a proof; null while this is not known.',
      ),
  }),
  pricing: z
    .looseObject({ ...pricingSchema.shape, pricing_type: z.literal('variable').optional() })
    .optional(),
  precision: z.string().optional(),
  prompt_caching: z.looseObject({ supported: z.boolean() }).optional(),
  reasoning: z
    .object({
      supported_efforts: efforts,
      guaranteed_efforts: efforts.optional(),
      default_effort: z.enum(EFFORTS).optional(),
    })
    .optional(),
})

/** An entry; built in `entry.ts`. */
export const modelSchema = z.object({
  id: z.string().describe('A route selector.'),
  object: z.literal('model'),
  created: z.int(),
  owned_by: z.string(),
  service: details.optional().describe('With `detail=true`.'),
})

const described = {
  detail: { ...MODEL_PARAMETERS.detail, description: 'Adds the `service` block.' },
}

export const LIST_MODELS_OPERATION: Operation = {
  summary: 'List everything a request can name',
  tag: 'Models',
  query: {
    ...described,
    model_key: { ...MODEL_PARAMETERS.model_key, description: 'Entries of this model key.' },
    region: { ...MODEL_PARAMETERS.region, description: 'Entries of this region.' },
    provider: { ...MODEL_PARAMETERS.provider, description: 'Entries of this provider.' },
    route_id: { ...MODEL_PARAMETERS.route_id, description: 'The entry of this selector.' },
    type: { ...MODEL_PARAMETERS.type, description: 'Entries of this endpoint.' },
  },
  answer: {
    'application/json': {
      name: 'ModelList',
      schema: z.object({ object: z.literal('list'), data: z.array(modelSchema) }),
    },
  },
  errors: ['invalid_parameter'],
}

export const RETRIEVE_MODEL_OPERATION: Operation = {
  summary: 'Show one entry',
  tag: 'Models',
  query: described,
  path: { id: 'A selector, with or without its slashes escaped.' },
  answer: { 'application/json': { name: 'Model', schema: modelSchema } },
  errors: ['invalid_parameter', 'model_not_found'],
}
