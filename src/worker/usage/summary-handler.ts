import { z } from 'zod'
import { utf8 } from '../../protocol/bytes.ts'
import { authenticate } from '../auth/authenticate.ts'
import type { Handler } from '../context.ts'
import { csvRecord, csvStream, wantsCsv } from '../http/csv.ts'
import type { Operation } from '../http/operation.ts'
import { readParameter, type ParameterForm } from '../http/query.ts'
import { jsonText } from '../http/reply.ts'
import { ledgerWithPauses } from './handler.ts'
import { readUsageQuery, USAGE_PARAMETERS } from './query.ts'
import {
  GROUPINGS,
  memberNames,
  summarize,
  sumMembers,
  type Grouping,
  type UsageSummary,
} from './summary.ts'
import type { Sums } from './totals.ts'

export const GROUP_BY: ParameterForm<readonly Grouping[]> = {
  expected: `one or more of ${GROUPINGS.join(', ')} with commas between them`,
  read: (text) => {
    const names = text.split(',')
    const known = GROUPINGS.filter((name) => names.includes(name))
    return known.length === names.length ? known : undefined
  },
  schema: { type: 'string' },
}

/** `GET /v1/usage/summary`: the caller's ledger added up by day (UTC), model, key or provider, in JSON or CSV. */
export const summarizeUsage: Handler = async (request, context) => {
  const { customerId } = await context.inTurn(1, () => authenticate(request, context))
  const parameters = new URL(request.url).searchParams
  const query = readUsageQuery(parameters)
  const groupings = readParameter(parameters, 'group_by', GROUP_BY) ?? ['day']
  const ledger = ledgerWithPauses(customerId, context)
  const summary = await summarize(ledger, customerId, query, groupings)
  const names = memberNames(groupings)
  return wantsCsv(request.headers)
    ? csvStream('usage-summary.csv', summaryCsv(summary, names))
    : jsonText(utf8(summaryJson(summary)))
}

async function* summaryCsv(
  { groups, total }: UsageSummary,
  names: readonly string[],
): AsyncGenerator<string> {
  yield csvRecord([...names, ...sumMembers(total).map(([name]) => name)])
  for (const { members, sums } of groups) {
    const cells = names.map((name) => members[name] ?? null)
    yield csvRecord([...cells, ...sumMembers(sums).map(([, text]) => text)])
  }
}

/** The summary as JSON. Money is written with all its digits, which a double cannot represent. */
export function summaryJson({ groups, total }: UsageSummary): string {
  const data = groups.map(
    (group) => `{${JSON.stringify(group.members).slice(1, -1)},${sumsJson(group.sums)}}`,
  )
  return `{"data":[${data.join(',')}],"total":{${sumsJson(total)}}}`
}

function sumsJson(sums: Sums): string {
  const members = sumMembers(sums).map(([name, text]) => `"${name}":${text}`)
  return members.join(',')
}

const sumsSchema = {
  requests: z.int(),
  prompt_tokens: z.int(),
  completion_tokens: z.int(),
  audio_seconds: z.number(),
  cost_eur: z.number().describe('All digits are written out; read them as text to have them all.'),
}

const { start, end, model, key_prefix: keyPrefix } = USAGE_PARAMETERS

export const USAGE_SUMMARY_OPERATION: Operation = {
  summary: 'Add up what was billed, by day, model, key or provider',
  tag: 'Usage',
  query: {
    group_by: { ...GROUP_BY, description: `${GROUP_BY.expected}; \`day\` where it is absent.` },
    start: { ...start, description: 'Rows from this time on.' },
    end: { ...end, description: 'Rows up to this time.' },
    model: { ...model, description: 'Rows of this route.' },
    key_prefix: { ...keyPrefix, description: 'Rows of this key.' },
  },
  answer: {
    'application/json': {
      name: 'UsageSummary',
      schema: z.object({
        data: z.array(
          z.object({
            day: z.iso.date().optional(),
            model: z.string().optional(),
            key_prefix: z.string().nullish(),
            key_name: z.string().nullish(),
            provider: z.string().optional(),
            ...sumsSchema,
          }),
        ),
        total: z.object(sumsSchema),
      }),
    },
    'text/csv': { name: 'UsageSummaryCsv', schema: z.string() },
  },
  errors: ['invalid_parameter', 'rate_limit_exceeded'],
}
