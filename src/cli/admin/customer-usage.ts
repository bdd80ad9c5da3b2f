import type { Command } from 'commander'
import { whole } from './arguments.ts'
import { customerPath, type AdminCall } from './customer-changes.ts'
import { withQuery } from './operator-commands.ts'

/** The options of `usage` and `summary`, mapped to the query parameters of the admin API. */
const PARAMETERS: Readonly<Record<string, string>> = {
  limit: 'limit',
  offset: 'offset',
  start: 'start',
  end: 'end',
  model: 'model',
  keyPrefix: 'key_prefix',
  groupBy: 'group_by',
}

/** `customers usage` and `customers summary`. */
export function addCustomerUsage(customers: Command, call: AdminCall): void {
  const ask =
    (...path: readonly string[]) =>
    (customer: string, given: Readonly<Record<string, unknown>>) => {
      const query = Object.fromEntries(
        Object.entries(given).map(([name, value]) => [PARAMETERS[name] ?? name, value]),
      )
      return call('GET', withQuery(customerPath(customer, ...path), query))
    }
  withFilters(customers.command('usage <customer>'))
    .description('What was billed to a customer, newest first')
    .option('--limit <count>', 'rows of a page', whole)
    .option('--offset <count>', 'rows to skip', whole)
    .action(ask('usage'))
  withFilters(customers.command('summary <customer>'))
    .description('What was billed to a customer, added up')
    .option('--group-by <names>', 'day, model, key, provider, with commas between them')
    .action(ask('usage', 'summary'))
}

function withFilters(command: Command): Command {
  return command
    .option('--start <time>', 'rows from this time on, RFC 3339')
    .option('--end <time>', 'rows up to this time, RFC 3339')
    .option('--model <route>', 'rows of this route')
    .option('--key-prefix <prefix>', 'rows of this key')
}
