import { useState } from 'preact/hooks'
import type { Client } from '../../client/browser.ts'
import { createRouterReader } from '../parts/router-reader.ts'
import { readRequirements, readReceiptInput, type Inputs } from '../verifier/inputs.ts'
import { judgeReceipt, type ReceiptReport } from '../verifier/judge-receipt.ts'
import { ask, type Asked, type Message } from './ask.ts'
import type { ConsoleDeps } from './deps.ts'

export interface Turn {
  readonly question: string
  readonly text: string
  /** The verdict on its receipt, or why there is no receipt; undefined until known. */
  readonly receipt?: ReceiptReport | string
  readonly problem?: string
}

/** The settings for the next question. */
export interface Settings {
  readonly model: string
  readonly reasoning: string
  readonly failover: string
}

export interface Chat {
  readonly turns: readonly Turn[]
  readonly busy: boolean
  /** Adds a turn. Never rejects. */
  readonly send: (question: string, client: Client) => Promise<void>
}

/** The turns of a chat, each with the verdict on its receipt. */
export function useChat(
  { model, reasoning, failover }: Settings,
  inputs: Inputs,
  deps: ConsoleDeps,
): Chat {
  const [turns, setTurns] = useState<readonly Turn[]>([])
  const [busy, setBusy] = useState(false)
  const send: Chat['send'] = async (question, client) => {
    const index = turns.length
    const put = (turn: Omit<Turn, 'question'>) =>
      setTurns((before) => [...before.slice(0, index), { question, ...turn }])
    setBusy(true)
    put({ text: '' })
    const messages = [...turns.flatMap(messagesOf), { role: 'user' as const, content: question }]
    const others = failover === '' ? [] : [failover]
    let text = ''
    try {
      const { apiKey } = inputs
      const asked = await ask(
        { apiKey, model, reasoning, failover: others, messages },
        { origin: deps.origin, send: client.fetch },
        (grown) => {
          text = grown
          put({ text })
        },
      )
      put({ text: asked.text, receipt: await judge(asked, inputs, deps) })
    } catch (error) {
      // Keep the received part of an interrupted answer: it was billed.
      put({
        text,
        problem: error instanceof Error ? error.message : 'The question was not answered.',
      })
    } finally {
      setBusy(false)
    }
  }
  return { turns, busy, send }
}

function messagesOf({ question, text }: Turn): Message[] {
  if (text === '') return []
  return [
    { role: 'user', content: question },
    { role: 'assistant', content: text },
  ]
}

/** A receipt's report, or why there is none. */
async function judge(
  asked: Asked,
  inputs: Inputs,
  deps: ConsoleDeps,
): Promise<ReceiptReport | string> {
  if (asked.receiptId === undefined) return 'This answer has no receipt.'
  try {
    const input = readReceiptInput({ ...inputs, receiptId: asked.receiptId })
    const compared = { ...input, request: asked.request, response: asked.response }
    const router = createRouterReader(new URL(deps.origin))
    return await judgeReceipt(compared, router, readRequirements(inputs), deps)
  } catch (error) {
    return error instanceof Error ? error.message : 'The receipt cannot be judged.'
  }
}
