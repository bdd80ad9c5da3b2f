import { EventEmitter } from 'node:events'
import type { AnswerBody } from '../../../src/enclave/egress/answer-body.ts'

/** A provider's answer that tests speak for. */
export class FakeAnswer
  extends EventEmitter<{ data: [Buffer]; end: []; close: [] }>
  implements AnswerBody
{
  readableEnded = false
  readonly asked: string[] = []

  pause() {
    this.asked.push('pause')
  }

  resume() {
    this.asked.push('resume')
  }

  destroy() {
    this.asked.push('destroy')
  }

  give(...parts: readonly string[]) {
    for (const part of parts) this.emit('data', Buffer.from(part))
  }

  finish() {
    this.readableEnded = true
    this.emit('end')
    this.emit('close')
  }
}
