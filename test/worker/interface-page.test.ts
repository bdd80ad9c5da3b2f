import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { attestationBlockSchema, receiptClaimsSchema } from '../../src/protocol/receipt.ts'
import { MAX_UNKNOWN_MEMBERS } from '../../src/worker/completion/few-entries.ts'
import { MAX_BODY_BYTES } from '../../src/worker/completion/request-body.ts'
import { MAX_FAILOVERS } from '../../src/worker/completion/request-members.ts'
import { FILE_BYTES } from '../../src/worker/transcription/upload-body.ts'
import { MAX_PAGE_SIZE } from '../../src/worker/http/query.ts'

/** docs/api.md, held against the code: a header or a claim that it does not describe fails here. */

const PAGE = readFileSync(new URL('../../docs/api.md', import.meta.url), 'utf8').replaceAll(
  /^```[^]*?^```$/gm,
  '',
)

/** What stands in backticks in one section. */
function namesIn(heading: string): Set<string> {
  const section = PAGE.split(`\n## ${heading}\n`)[1]?.split('\n## ')[0] ?? ''
  return new Set(Array.from(section.matchAll(/`([^`]+)`/g), ([, name = '']) => name))
}

/** The value of a row of "Limits". */
function limit(row: string): string {
  const [, value = ''] = PAGE.split('\n## Limits\n')[1]?.split(`\n| ${row}`) ?? []
  return value.split('|')[1]?.trim() ?? ''
}

describe('docs/api.md', () => {
  test('names every claim of a receipt, and every member of its two hops', () => {
    const claims = [
      ...Object.keys(receiptClaimsSchema.shape),
      ...Object.keys(receiptClaimsSchema.shape.receipt_signature.shape),
      ...Object.keys(attestationBlockSchema.shape),
    ]
    const described = namesIn('Receipts')
    expect(claims.filter((name) => !described.has(name))).toEqual([])
  })

  test('states the limits that hold', () => {
    const mib = (bytes: number) => `${bytes / 1_048_576} MiB`
    expect(limit('body of a chat request')).toContain(mib(MAX_BODY_BYTES))
    expect(limit('file of a transcription')).toContain(mib(FILE_BYTES))
    expect(limit('members of a body that the router does not know')).toBe(`${MAX_UNKNOWN_MEMBERS}`)
    expect(limit('`failover` entries')).toBe(`${MAX_FAILOVERS}`)
    expect(limit('rows of a usage page')).toBe(`${MAX_PAGE_SIZE}`)
  })
})
