import type { Command } from 'commander'
import { StartError } from '../../host/stack/start-error.ts'
import { eurOrDefault, whole, wholeOrDefault } from './arguments.ts'

type Body = Readonly<Record<string, unknown>>

/** Calls the router and prints its answer. */
export type AdminCall = (method: string, path: string, body?: Body) => Promise<void>

/**
 * The path of a customer, or of something that belongs to the customer.
 * @throws StartError for an id that would change the path, such as `..`
 */
export function customerPath(id: string, ...further: readonly string[]): string {
  return ['/admin/customers', ...[id, ...further].map(segmentOf)].join('/')
}

/**
 * URL parsing resolves `.` and `..` even when percent-encoded; an empty segment is dropped. Deleting the key `..` would
 * therefore delete its customer.
 */
function segmentOf(id: string): string {
  if (/^\.{0,2}$/.test(id)) throw new StartError(`"${id}" is no id`)
  return encodeURIComponent(id)
}

/** `customers change`, `suspend` and `resume`. */
export function addCustomerChanges(customers: Command, call: AdminCall): void {
  customers
    .command('change <customer>')
    .description('Options left out stay; "default" takes that of the service')
    .option('--name <name>')
    .option('--plan <plan>', 'a plan of the configuration')
    .option('--receipt-retention-days <days>', 'a whole number, or "default"', wholeOrDefault)
    .option('--alert-balance <eur>', 'balance below which you are told, or "default"', eurOrDefault)
    .option('--alert-key-limit-pct <percent>', 'part of a key limit, or "default"', wholeOrDefault)
    .action((customer: string, given: Body) =>
      call('PATCH', customerPath(customer), {
        name: given['name'],
        plan: given['plan'],
        receipt_retention_days: given['receiptRetentionDays'],
        alert_balance_eur: given['alertBalance'],
        alert_key_limit_pct: given['alertKeyLimitPct'],
      }),
    )
  for (const [name, suspended, description] of [
    [
      'suspend',
      true,
      'Refuse new requests of a customer; those in progress are completed and billed',
    ],
    ['resume', false, 'Serve a suspended customer again'],
  ] as const) {
    customers
      .command(`${name} <customer>`)
      .description(description)
      .action((customer: string) => call('PATCH', customerPath(customer), { suspended }))
  }
}

/** `customers erase`. */
export function addErasure(customers: Command, call: AdminCall): void {
  customers
    .command('erase <customer>')
    .description('Erase a customer for good; prints the id that its ledger is kept under')
    .requiredOption('--yes', 'that this cannot be undone')
    .action((customer: string) => call('DELETE', customerPath(customer)))
}

/** `keys rotate`. */
export function addKeyRotation(keys: Command, call: AdminCall): void {
  keys
    .command('rotate <customer> <prefix>')
    .description('Give a key a new secret; the old one ends after a grace time')
    .option('--grace-seconds <seconds>', '0 ends the old one at once (default: a day)', whole)
    .action((customer: string, prefix: string, { graceSeconds }: { graceSeconds?: number }) =>
      call('POST', customerPath(customer, 'keys', prefix, 'rotate'), {
        grace_seconds: graceSeconds,
      }),
    )
}
