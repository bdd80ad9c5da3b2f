import * as z from 'zod'
import { MalformedEvidence } from '../protocol/malformed-evidence.ts'
import { readDocument } from '../protocol/read-document.ts'
import { parseStrictJson } from '../protocol/strict-json.ts'

const DOCUMENT = 'receipt file'

const answerSchema = z.object({ id: z.string(), receipt: z.string() })

/** A receipt as a user has it. */
export interface ReceiptText {
  /** Present only where the text is the router's complete answer. */
  readonly id: string | undefined
  /** The compact JWS. */
  readonly receipt: string
}

/**
 * Reads the router's complete answer to `GET /v1/receipts/{id}`, or just the JWS from it.
 * @throws MalformedEvidence for anything else; for a model's answer, the message says how to get its receipt
 */
export function readReceiptText(text: string): ReceiptText {
  const trimmed = text.trim()
  const isJson = trimmed.startsWith('{')
  const json = isJson ? parseStrictJson(trimmed, DOCUMENT) : undefined
  const answer = answerSchema.safeParse(json)
  if (answer.success) return answer.data
  const named = /"receipt_id"\s*:\s*"([\w-]{1,64})"/.exec(trimmed)?.[1]
  if (named !== undefined) {
    const reason = `this is a model's answer; its receipt is what the router answers to GET /v1/receipts/${named}`
    throw new MalformedEvidence(DOCUMENT, reason)
  }
  return isJson ? readDocument(answerSchema, json, DOCUMENT) : { id: undefined, receipt: trimmed }
}
