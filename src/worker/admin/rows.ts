import type { Handler } from '../context.ts'
import type { AdminOperation } from '../auth/admin-token.ts'
import { ADMIN_OPERATIONS } from './operations.ts'
import { listAudit } from './audit-handler.ts'
import * as admin from './handlers.ts'
import { HISTORY_OPERATION, showHistory } from './history.ts'
import { showLedger } from './ledger.ts'
import { showMetrics } from './metrics.ts'
import { listQuarantine, settleOne } from './quarantine.ts'
import { REQUEST_OPERATION, showRequest } from './requests.ts'
import { listRoutes, ROUTES_OPERATION } from './routes.ts'
import { createSession, deleteSession, showSession } from './sessions.ts'
import { createToken, listTokens, revokeToken } from './tokens.ts'

type AdminRow = [
  method: 'GET' | 'POST' | 'PATCH' | 'DELETE',
  path: string,
  name: string,
  handler: Handler,
  operation: AdminOperation,
]

/** The operator's rows of the router's table. */
export const ADMIN_ROWS: readonly AdminRow[] = [
  ['GET', '/admin/ledger', 'admin.ledger', showLedger, ADMIN_OPERATIONS.ledger],
  [
    'POST',
    '/admin/customers',
    'admin.customers.create',
    admin.createCustomer,
    ADMIN_OPERATIONS.createCustomer,
  ],
  [
    'GET',
    '/admin/customers',
    'admin.customers.list',
    admin.listCustomers,
    ADMIN_OPERATIONS.listCustomers,
  ],
  [
    'GET',
    '/admin/customers/:id',
    'admin.customers.show',
    admin.showCustomer,
    ADMIN_OPERATIONS.showCustomer,
  ],
  [
    'PATCH',
    '/admin/customers/:id',
    'admin.customers.change',
    admin.patchCustomer,
    ADMIN_OPERATIONS.patchCustomer,
  ],
  [
    'DELETE',
    '/admin/customers/:id',
    'admin.customers.erase',
    admin.eraseCustomer,
    ADMIN_OPERATIONS.eraseCustomer,
  ],
  [
    'POST',
    '/admin/customers/:id/keys',
    'admin.keys.create',
    admin.createKey,
    ADMIN_OPERATIONS.createKey,
  ],
  [
    'GET',
    '/admin/customers/:id/keys',
    'admin.keys.list',
    admin.listKeys,
    ADMIN_OPERATIONS.listKeys,
  ],
  [
    'PATCH',
    '/admin/customers/:id/keys/:key_prefix',
    'admin.keys.change',
    admin.changeKey,
    ADMIN_OPERATIONS.changeKey,
  ],
  [
    'DELETE',
    '/admin/customers/:id/keys/:key_prefix',
    'admin.keys.delete',
    admin.deleteKey,
    ADMIN_OPERATIONS.deleteKey,
  ],
  [
    'POST',
    '/admin/customers/:id/keys/:key_prefix/rotate',
    'admin.keys.rotate',
    admin.rotate,
    ADMIN_OPERATIONS.rotateKey,
  ],
  [
    'POST',
    '/admin/customers/:id/credits',
    'admin.credits.add',
    admin.addCredit,
    ADMIN_OPERATIONS.addCredit,
  ],
  ['POST', '/admin/tokens', 'admin.tokens.create', createToken, ADMIN_OPERATIONS.createToken],
  ['GET', '/admin/tokens', 'admin.tokens.list', listTokens, ADMIN_OPERATIONS.listTokens],
  ['DELETE', '/admin/tokens/:id', 'admin.tokens.revoke', revokeToken, ADMIN_OPERATIONS.revokeToken],
  ['POST', '/admin/session', 'admin.session.begin', createSession, ADMIN_OPERATIONS.createSession],
  ['GET', '/admin/session', 'admin.session.show', showSession, ADMIN_OPERATIONS.showSession],
  ['DELETE', '/admin/session', 'admin.session.end', deleteSession, ADMIN_OPERATIONS.deleteSession],
  ['GET', '/admin/history', 'admin.history', showHistory, HISTORY_OPERATION],
  ['GET', '/admin/audit', 'admin.audit', listAudit, ADMIN_OPERATIONS.audit],
  [
    'GET',
    '/admin/quarantine',
    'admin.quarantine.list',
    listQuarantine,
    ADMIN_OPERATIONS.listQuarantine,
  ],
  [
    'POST',
    '/admin/quarantine/:request_id/settle',
    'admin.quarantine.settle',
    settleOne,
    ADMIN_OPERATIONS.settleQuarantined,
  ],
  [
    'POST',
    '/admin/maintenance',
    'admin.maintenance',
    admin.maintenance,
    ADMIN_OPERATIONS.maintenance,
  ],
  ['GET', '/admin/routes', 'admin.routes', listRoutes, ROUTES_OPERATION],
  ['GET', '/admin/requests/:request_id', 'admin.requests.show', showRequest, REQUEST_OPERATION],
  ['GET', '/admin/metrics', 'admin.metrics', showMetrics, ADMIN_OPERATIONS.metrics],
  ['GET', '/admin/providers', 'admin.providers', admin.listProviders, ADMIN_OPERATIONS.providers],
]
