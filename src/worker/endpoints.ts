import { ADMIN_ROWS } from './admin/rows.ts'
import { KEY_CONFIG_PATH } from '../protocol/ehbp.ts'
import { UNSEAL_PATH } from '../protocol/unseal.ts'
import {
  getAttestation,
  getJwks,
  getStoredEnvelope,
  getTrustBundle,
} from './attestation/handlers.ts'
import {
  ATTESTATION_OPERATION,
  HEALTH_OPERATION,
  JWKS_OPERATION,
  STORED_ENVELOPE_OPERATION,
  TRUST_OPERATION,
  UNSEAL_OPERATION,
} from './attestation/operation.ts'
import { getHealth } from './attestation/health-handler.ts'
import { postUnseal } from './attestation/unseal-handler.ts'
import { completeChat } from './chat/handler.ts'
import { CHAT_OPERATION } from './chat/operation.ts'
import { showConsole } from './console/handler.ts'
import { CONSOLE_OPERATION, PLAYGROUND_OPERATION } from './console/operation.ts'
import type { Handler } from './context.ts'
import { getHpkeKeyConfig, HPKE_KEYS_OPERATION } from './ehbp/key-config.ts'
import type { Operation } from './http/operation.ts'
import { errorFormatAt, type ErrorFormat } from './http/error-format.ts'
import { attestationUnavailable } from './http/reply.ts'
import { countTokens } from './messages/count-tokens.ts'
import { createMessage } from './messages/handler.ts'
import { COUNT_TOKENS_OPERATION, MESSAGES_OPERATION } from './messages/operation.ts'
import { createResponse } from './responses/handler.ts'
import { RESPONSES_OPERATION } from './responses/operation.ts'
import { listModels, retrieveModel } from './models/handler.ts'
import { createEmbeddings } from './embeddings/handler.ts'
import { EMBEDDINGS_OPERATION } from './embeddings/operation.ts'
import { LIST_MODELS_OPERATION, RETRIEVE_MODEL_OPERATION } from './models/operation.ts'
import { describeInterface, OPENAPI_OPERATION } from './openapi/handler.ts'
import { getReceipt, getReceiptEvidence } from './receipts/handler.ts'
import { RECEIPT_EVIDENCE_OPERATION, RECEIPT_OPERATION } from './receipts/operation.ts'
import { transcribe } from './transcription/handler.ts'
import { TRANSCRIPTION_OPERATION } from './transcription/operation.ts'
import { listUsage } from './usage/handler.ts'
import { showKey } from './usage/key-handler.ts'
import { KEY_OPERATION } from './usage/key-operation.ts'
import { summarizeUsage, USAGE_SUMMARY_OPERATION } from './usage/summary-handler.ts'
import {
  CUSTOMER_SUMMARY_OPERATION,
  CUSTOMER_USAGE_OPERATION,
  listCustomerUsage,
  summarizeCustomerUsage,
} from './usage/operator-handlers.ts'
import { USAGE_OPERATION } from './usage/operation.ts'
import { listWebhookDeliveries, runWebhookRound } from './webhooks/handlers.ts'
import { LIST_DELIVERIES_OPERATION, RUN_WEBHOOKS_OPERATION } from './webhooks/operation.ts'

/** One row of the router's table. */
export interface Endpoint {
  /** The endpoint's part of the interface description. */
  readonly operation: Operation
  readonly method: 'GET' | 'POST' | 'PATCH' | 'DELETE'
  readonly path: string
  /** The endpoint's name in logs and metrics; raw paths may contain ids. */
  readonly name: string
  readonly handler: Handler
  /**
   * Who may read the answers from a web page: any page for `public`, the configured origins for `keyed`, no page for
   * `admin`.
   */
  readonly audience: 'public' | 'keyed' | 'admin'
  /**
   * Whether pages of any origin may read the answers: the verifier page is opened from local files and other servers.
   * It is safe because browsers never send an API key on their own.
   */
  readonly anyOrigin?: boolean
  /** The format of the endpoint's errors; OpenAI's unless given. */
  readonly errors?: ErrorFormat
  /** The answer when the endpoint is unavailable, where it differs from an ordinary error. */
  readonly unavailable?: () => Response
}

/** Every endpoint of the router. Where patterns overlap, the first match wins. */
export const ENDPOINTS: readonly Endpoint[] = [
  ...rows('public', [
    ['GET', '/v1/models', 'models.list', listModels, LIST_MODELS_OPERATION],
    ['GET', '/v1/models/:id+', 'models.retrieve', retrieveModel, RETRIEVE_MODEL_OPERATION],
    ['GET', '/.well-known/jwks.json', 'jwks', getJwks, JWKS_OPERATION],
    ['GET', '/.well-known/trust.json', 'trust', getTrustBundle, TRUST_OPERATION],
    ['GET', KEY_CONFIG_PATH, 'hpke_keys', getHpkeKeyConfig, HPKE_KEYS_OPERATION],
    [
      'GET',
      '/attestation/:sha256',
      'attestation.stored',
      getStoredEnvelope,
      STORED_ENVELOPE_OPERATION,
    ],
    ['GET', '/openapi.json', 'openapi', describeInterface(() => ENDPOINTS), OPENAPI_OPERATION],
    ['GET', '/healthz', 'health', getHealth, HEALTH_OPERATION],
    ['GET', '/console', 'console', showConsole, CONSOLE_OPERATION],
    ['GET', '/console/try', 'console.try', showConsole, PLAYGROUND_OPERATION],
    ['POST', UNSEAL_PATH, 'unseal', postUnseal, UNSEAL_OPERATION],
  ]),
  {
    method: 'GET',
    path: '/attestation',
    name: 'attestation',
    handler: getAttestation,
    operation: ATTESTATION_OPERATION,
    audience: 'public',
    unavailable: attestationUnavailable,
  },
  ...rows('keyed', [
    ['POST', '/v1/chat/completions', 'chat', completeChat, CHAT_OPERATION],
    ['POST', '/v1/responses', 'responses', createResponse, RESPONSES_OPERATION],
    ['POST', '/v1/messages', 'messages', createMessage, MESSAGES_OPERATION],
    [
      'POST',
      '/v1/messages/count_tokens',
      'messages.count_tokens',
      countTokens,
      COUNT_TOKENS_OPERATION,
    ],
    ['POST', '/v1/embeddings', 'embeddings', createEmbeddings, EMBEDDINGS_OPERATION],
    ['POST', '/v1/audio/transcriptions', 'transcription', transcribe, TRANSCRIPTION_OPERATION],
    ['GET', '/v1/usage', 'usage', listUsage, USAGE_OPERATION],
    ['GET', '/v1/usage/summary', 'usage.summary', summarizeUsage, USAGE_SUMMARY_OPERATION],
    ['GET', '/v1/key', 'key', showKey, KEY_OPERATION],
  ]),
  ...rows('keyed', [
    [
      'GET',
      '/v1/receipts/:id/evidence',
      'receipts.evidence',
      getReceiptEvidence,
      RECEIPT_EVIDENCE_OPERATION,
    ],
    ['GET', '/v1/receipts/:id?', 'receipts.retrieve', getReceipt, RECEIPT_OPERATION],
  ]).map((endpoint) => ({ ...endpoint, anyOrigin: true })),
  ...rows('admin', [
    ...ADMIN_ROWS,
    [
      'GET',
      '/admin/customers/:id/usage',
      'admin.customers.usage',
      listCustomerUsage,
      CUSTOMER_USAGE_OPERATION,
    ],
    [
      'GET',
      '/admin/customers/:id/usage/summary',
      'admin.customers.summary',
      summarizeCustomerUsage,
      CUSTOMER_SUMMARY_OPERATION,
    ],
    [
      'GET',
      '/admin/webhooks/deliveries',
      'admin.webhooks.deliveries',
      listWebhookDeliveries,
      LIST_DELIVERIES_OPERATION,
    ],
    ['POST', '/admin/webhooks/run', 'admin.webhooks.run', runWebhookRound, RUN_WEBHOOKS_OPERATION],
  ]),
]

type Row = [
  method: Endpoint['method'],
  path: string,
  name: string,
  handler: Handler,
  operation: Operation,
]

function rows(audience: Endpoint['audience'], list: readonly Row[]): Endpoint[] {
  return list.map(([method, path, name, handler, operation]) => {
    return { method, path, name, handler, operation, audience, errors: errorFormatAt(path) }
  })
}
