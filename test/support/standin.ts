import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { ExchangeEntry } from '../../src/standin/exchange-log.ts'
import type { scriptedAnswerSchema } from '../../src/standin/script.ts'
import type { z } from 'zod'

/** The stand-in provider of a running stack, seen from a test. */
export interface Standin {
  /** What it received and sent, oldest first, as exact bytes. */
  exchanges(): Promise<readonly ExchangeEntry[]>
  /** The JSON body of the first request that it received. */
  forwarded(): Promise<Record<string, unknown>>
  /** Makes it send one answer byte for byte. */
  script(answer: z.input<typeof scriptedAnswerSchema>): Promise<void>
  /** Forgets exchanges and script. */
  reset(): Promise<void>
}

export function standinOf(stack: { readonly stateDir: string }): Standin {
  const config = readFileSync(join(stack.stateDir, 'config.json'), 'utf8')
  return standinAt(/http:\/\/127\.0\.0\.1:\d+/.exec(config)?.[0] ?? '')
}

export function standinAt(origin: string): Standin {
  const call = async (method: string, path: string, body?: unknown): Promise<Response> => {
    const answer = await fetch(`${origin}/__standin/${path}`, {
      method,
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    })
    if (!answer.ok) throw new Error(`the stand-in answered ${answer.status}`)
    return answer
  }
  const exchanges = async () => {
    const answer = await call('GET', 'exchanges')
    const { exchanges: all }: { exchanges: ExchangeEntry[] } = await answer.json()
    return all
  }
  return {
    exchanges,
    forwarded: async () => {
      const [exchange] = await exchanges()
      return JSON.parse(Buffer.from(exchange?.request.base64 ?? '', 'base64').toString())
    },
    script: async (answer) => void (await call('POST', 'script', answer)),
    reset: async () => void (await call('DELETE', 'exchanges')),
  }
}
