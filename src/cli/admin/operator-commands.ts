import { Option, type Command } from 'commander'
import { whole } from './arguments.ts'
import type { AdminCall } from './customer-changes.ts'

/** Commands about the router itself, not about one of its customers. */
export function addOperatorCommands(program: Command, call: AdminCall): void {
  addTokens(program, call)
  addAudit(program, call)
  addHistory(program, call)
  addRequests(program, call)
  addQuarantine(program, call)
  addWebhooks(program, call)
  addMaintenance(program, call)
  for (const [name, description] of STATES) {
    program
      .command(name)
      .description(description)
      .action(() => call('GET', `/admin/${name}`))
  }
}

/** Read-only commands; each one gets `/admin/<name>`. */
const STATES = [
  ['routes', 'The health of all routes, as the answering instance sees it'],
  ['providers', 'How far each provider is verified, as the answering instance sees it'],
  ['metrics', 'The metrics of all workers of the host, in the text format of Prometheus'],
  ['ledger', 'The position of the ledger, which never falls'],
] as const

function addTokens(program: Command, call: AdminCall): void {
  const tokens = program.command('tokens').description('Named admin tokens')
  tokens
    .command('create')
    .requiredOption('--name <name>')
    .addOption(
      new Option('--scope <scope>', 'what it may do')
        .choices(['read', 'customers', 'all'])
        .makeOptionMandatory(),
    )
    .option('--expires-at <time>', 'RFC 3339')
    .action((given: { name: string; scope: string; expiresAt?: string }) =>
      call('POST', '/admin/tokens', {
        name: given.name,
        scope: given.scope,
        expires_at: given.expiresAt,
      }),
    )
  tokens.command('list').action(() => call('GET', '/admin/tokens'))
  tokens
    .command('revoke <token>')
    .action((token: string) => call('DELETE', `/admin/tokens/${encodeURIComponent(token)}`))
}

function addAudit(program: Command, call: AdminCall): void {
  program
    .command('audit')
    .description('What operators did, newest first')
    .option('--limit <count>', 'entries of a page', whole)
    .option('--before <id>', 'the last id of the page before')
    .action((given: Readonly<Record<string, unknown>>) =>
      call('GET', withQuery('/admin/audit', given)),
    )
}

function addHistory(program: Command, call: AdminCall): void {
  program
    .command('history')
    .description('Requests, errors, times, tokens and spend over time')
    .option('--hours <hours>', 'how far back, at most 2160 (default: 24)', whole)
    .action((given: Readonly<Record<string, unknown>>) =>
      call('GET', withQuery('/admin/history', given)),
    )
}

function addRequests(program: Command, call: AdminCall): void {
  program
    .command('request <id>')
    .description('Follow one request, by its x-request-id, from its key to its receipt')
    .action((id: string) => call('GET', `/admin/requests/${encodeURIComponent(id)}`))
}

function addQuarantine(program: Command, call: AdminCall): void {
  const quarantine = program
    .command('quarantine')
    .description('Settlements that the storage refused although their answers were delivered')
  quarantine.command('list').action(() => call('GET', '/admin/quarantine'))
  quarantine
    .command('settle <request>')
    .action((request: string) =>
      call('POST', `/admin/quarantine/${encodeURIComponent(request)}/settle`),
    )
}

function addWebhooks(program: Command, call: AdminCall): void {
  const webhooks = program.command('webhooks').description('What is reported to the operator')
  webhooks
    .command('deliveries')
    .description('What was reported where, newest first')
    .option('--limit <count>', 'deliveries of a page', whole)
    .addOption(new Option('--state <state>').choices(['pending', 'delivered', 'failed']))
    .action((given: Readonly<Record<string, unknown>>) =>
      call('GET', withQuery('/admin/webhooks/deliveries', given)),
    )
  webhooks
    .command('run')
    .description('Look for what is to be reported and deliver what is due, now')
    .action(() => call('POST', '/admin/webhooks/run'))
}

function addMaintenance(program: Command, call: AdminCall): void {
  program
    .command('maintenance')
    .description('Release stale reservations and expire receipts')
    .option('--now <time>', 'as if it were this time, RFC 3339 (local mode only)')
    .action(({ now }: { now?: string }) =>
      call('POST', '/admin/maintenance', now === undefined ? {} : { now }),
    )
}

/** A path with the given options as its query. */
export function withQuery(path: string, given: Readonly<Record<string, unknown>>): string {
  const query = new URLSearchParams()
  for (const [name, value] of Object.entries(given)) query.set(name, String(value))
  return query.size === 0 ? path : `${path}?${query}`
}
