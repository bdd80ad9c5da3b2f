import { readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { expect, test } from 'vitest'
import { completionOf } from '../support/answers.ts'
import { sqliteFiles } from '../support/crash/ledger-access.ts'
import { startStack, temporaryDirectory, type Stack } from '../support/stack.ts'

const PROMPT = 'the prompt that no log may contain'

test(
  'the log line of an internal error names where it was thrown, and nothing of prompts and keys',
  { timeout: 120_000 },
  async () => {
    const stateDir = temporaryDirectory()
    let stack = await startStack({ stateDir })
    try {
      const id = await makeReceipt(stack)
      await stack.stop()
      forgetHeads(join(stateDir, 'storage'))
      stack = await startStack({ stateDir })

      const answer = await stack.fetch(`/v1/receipts/${id}`)
      expect(answer.status).toBe(500)
      expect(await answer.json()).toMatchObject({
        error: { code: 'internal', message: 'The router failed on this request.' },
      })
      const readLog = () => readFileSync(join(stateDir, 'log/worker.log'), 'utf8')
      const lineOfError = () =>
        readLog()
          .split('\n')
          .find((text) => text.includes('"code":"internal"'))
      // The lines of a moment are written together, after the answer.
      await expect.poll(lineOfError).toBeDefined()
      await stack.stop()
      const log = readLog()
      const logged: unknown = JSON.parse(lineOfError() ?? '{}')
      expect(logged).toMatchObject({ event: 'request', error: 'Error', status: 500 })
      expect(logged).toMatchObject({
        frames: expect.arrayContaining([
          expect.stringMatching(/^wholeJws \(\S*worker\.js:\d+:\d+\)$/),
          expect.stringMatching(/^receiptOf\d* \(\S*worker\.js:\d+:\d+\)$/),
        ]),
      })
      expect(log).not.toContain(PROMPT)
      expect(log).not.toContain(stack.local.api_key)
    } finally {
      await stack.stop()
      rmSync(stateDir, { recursive: true, force: true })
    }
  },
)

async function makeReceipt(stack: Stack): Promise<string> {
  const answer = await stack.fetch('/v1/chat/completions', {
    method: 'POST',
    body: JSON.stringify({ model: 'glm-5', messages: [{ role: 'user', content: PROMPT }] }),
  })
  const { service } = await completionOf(answer)
  return service.receipt_id ?? ''
}

/** Damages the storage in a way that no program of ours does: receipts can no longer be put together. */
function forgetHeads(directory: string): void {
  for (const path of sqliteFiles(directory)) {
    const db = new DatabaseSync(path)
    const tables = db.prepare("SELECT 1 FROM sqlite_master WHERE name = 'receipt_heads'").all()
    if (tables.length > 0) db.exec('DELETE FROM receipt_heads')
    db.close()
  }
}
