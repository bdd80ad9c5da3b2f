import { expect, it } from 'vitest'
import { csvRecord, csvStream, wantsCsv } from '../../../src/worker/http/csv.ts'

it.each(['=1+1', '+1', '-1', '@SUM(A1)', '\t=1', '\r=1', '\n=1', '＝1'])(
  'makes no formula of %j',
  (text) => {
    expect(csvRecord([text])).toMatch(/^"?'/)
  },
)

it.each([
  ['a;=1+1', "a;'=1+1"],
  ['a;b;@SUM(A1);-1', "a;b;'@SUM(A1);'-1"],
  ['a\t+1', "a\t'+1"],
  ['a\n=1', '"a\n\'=1"'],
  [';＝1', ";'＝1"],
  ['a; =1 = b-c', 'a; =1 = b-c'],
])(
  'makes no formula of %j where a spreadsheet takes another separator than the comma',
  (text, written) => {
    expect(csvRecord([text])).toBe(`${written}\r\n`)
  },
)

it('quotes what needs it, and leaves numbers, flags and nothing as they are', () => {
  expect(csvRecord(['a,b', 'say "x"', 'two\nlines', -1, true, null, ''])).toBe(
    '"a,b","say ""x""","two\nlines",-1,true,,\r\n',
  )
})

it.each([
  ['text/csv', true],
  ['application/json, TEXT/CSV;q=0.5', true],
  ['text/csv;q=0', false],
  ['text/*', false],
  ['*/*', false],
  ['', false],
])('is asked for by Accept: %s (%s)', (accept, wanted) => {
  expect(wantsCsv(new Headers({ accept }))).toBe(wanted)
})

it('breaks off where a part cannot be made', async () => {
  async function* parts() {
    yield 'a\r\n'
    throw new Error('the ledger is gone')
  }
  const answer = csvStream('x.csv', parts())
  expect(answer.headers.get('content-type')).toMatch(/^text\/csv/)
  await expect(answer.text()).rejects.toThrow('the ledger is gone')
})
