import * as admin from './admin/handlers.ts'
import { showMetrics } from './admin/metrics.ts'
import {
  getAttestation,
  getJwks,
  getStoredEnvelope,
  getTrustBundle,
} from './attestation/handlers.ts'
import { getHealth } from './attestation/health-handler.ts'
import { completeChat } from './chat/door.ts'
import type { Handler } from './context.ts'
import { attestationUnavailable } from './http/reply.ts'
import { createResponse } from './responses/door.ts'
import { listModels, retrieveModel } from './models/handler.ts'
import { getReceipt, getReceiptEvidence } from './receipts/handler.ts'
import { transcribe } from './transcription/handler.ts'
import { listUsage } from './usage/handler.ts'

/** One row of the router's table. */
export interface Endpoint {
  readonly method: 'GET' | 'POST' | 'DELETE'
  readonly path: string
  /** What logs and metrics call it; raw paths may hold ids. */
  readonly name: string
  readonly handler: Handler
  /** Public ones may be read by any web page; keyed ones by the operator's own; admin ones by none. */
  readonly audience: 'public' | 'keyed' | 'admin'
  /** The answer when the endpoint fails to be available, where it has a form of its own. */
  readonly unavailable?: () => Response
}

/** Everything the router serves, and the only list of it. The order matters where patterns overlap. */
export const ENDPOINTS: readonly Endpoint[] = [
  ...rows('public', [
    ['GET', '/v1/models', 'models.list', listModels],
    ['GET', '/v1/models/:id+', 'models.retrieve', retrieveModel],
    ['GET', '/.well-known/jwks.json', 'jwks', getJwks],
    ['GET', '/.well-known/trust.json', 'trust', getTrustBundle],
    ['GET', '/attestation/:sha256', 'attestation.stored', getStoredEnvelope],
    ['GET', '/healthz', 'health', getHealth],
  ]),
  {
    method: 'GET',
    path: '/attestation',
    name: 'attestation',
    handler: getAttestation,
    audience: 'public',
    unavailable: attestationUnavailable,
  },
  ...rows('keyed', [
    ['POST', '/v1/chat/completions', 'chat', completeChat],
    ['POST', '/v1/responses', 'responses', createResponse],
    ['POST', '/v1/audio/transcriptions', 'transcription', transcribe],
    ['GET', '/v1/receipts/:id/evidence', 'receipts.evidence', getReceiptEvidence],
    ['GET', '/v1/receipts/:id?', 'receipts.retrieve', getReceipt],
    ['GET', '/v1/usage', 'usage', listUsage],
  ]),
  ...rows('admin', [
    ['POST', '/admin/customers', 'admin.customers.create', admin.createCustomer],
    ['GET', '/admin/customers', 'admin.customers.list', admin.listCustomers],
    ['GET', '/admin/customers/:id', 'admin.customers.show', admin.showCustomer],
    ['POST', '/admin/customers/:id/keys', 'admin.keys.create', admin.createKey],
    ['GET', '/admin/customers/:id/keys', 'admin.keys.list', admin.listKeys],
    ['DELETE', '/admin/customers/:id/keys/:key_prefix', 'admin.keys.delete', admin.deleteKey],
    ['POST', '/admin/customers/:id/credits', 'admin.credits.add', admin.addCredit],
    ['POST', '/admin/maintenance', 'admin.maintenance', admin.maintenance],
    ['GET', '/admin/routes', 'admin.routes', admin.listRoutes],
    ['GET', '/admin/metrics', 'admin.metrics', showMetrics],
    ['GET', '/admin/providers', 'admin.providers', admin.listProviders],
  ]),
]

type Row = [method: Endpoint['method'], path: string, name: string, handler: Handler]

function rows(audience: Endpoint['audience'], list: readonly Row[]): Endpoint[] {
  return list.map(([method, path, name, handler]) => ({ method, path, name, handler, audience }))
}
