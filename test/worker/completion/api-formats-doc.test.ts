import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { CHAT_MEMBERS, type ChatMemberRule } from '../../../src/worker/completion/chat-members.ts'
import { EMBEDDINGS_MEMBERS } from '../../../src/worker/embeddings/members.ts'
import { MESSAGES_BLOCKS, MESSAGES_MEMBERS } from '../../../src/worker/messages/members.ts'
import {
  RESPONSES_ITEMS,
  RESPONSES_MEMBERS,
  RESPONSES_TOOLS,
} from '../../../src/worker/responses/members.ts'

/** The tables of docs/api-formats.md are those that the decoders go by. */

const DOC = readFileSync(new URL('../../../docs/api-formats.md', import.meta.url), 'utf8')

/** The rows of the tables below a heading whose first column is a name in code. */
function rowsUnder(heading: string, column: string): string[] {
  const section = DOC.split(/^## /m).find((part) => part.startsWith(heading)) ?? ''
  const lines = section.split('\n')
  const start = lines.findIndex((line) => line.startsWith(`| ${column} `))
  const table = lines.slice(start + 2)
  const end = table.findIndex((line) => !line.startsWith('|'))
  return table.slice(0, end === -1 ? undefined : end).map(squeezed)
}

function squeezed(row: string): string {
  return row.replaceAll(/\s+/g, ' ').trim()
}

function rowOf({ member, becomes, note, unless, code }: ChatMemberRule): string {
  const passing = unless?.map((value) => `\`${JSON.stringify(value)}\``).join(', ')
  const status = becomes === 'refused' ? ` 400 \`${code ?? 'invalid_request_error'}\`` : ''
  const exception = passing === undefined ? '' : ` (unless ${passing})`
  return squeezed(`| \`${member}\` | ${becomes}${status}${exception} | ${note} |`)
}

describe('docs/api-formats.md', () => {
  test.each<[string, string, readonly ChatMemberRule[]]>([
    ['`/v1/chat/completions`', 'Member', CHAT_MEMBERS],
    ['`/v1/responses`', 'Member', RESPONSES_MEMBERS],
    ['`/v1/responses`', 'Item type', RESPONSES_ITEMS],
    ['`/v1/responses`', 'Tool type', RESPONSES_TOOLS],
    ['`/v1/messages`', 'Member', MESSAGES_MEMBERS],
    ['`/v1/messages`', 'Block type', MESSAGES_BLOCKS],
    ['`/v1/embeddings`', 'Member', EMBEDDINGS_MEMBERS],
  ])('has the table that %s goes by: %s', (heading, column, rules) => {
    expect(rowsUnder(heading, column)).toEqual(rules.map(rowOf))
  })
})
