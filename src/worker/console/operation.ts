import { z } from 'zod'
import type { Operation } from '../http/operation.ts'

const page = { 'text/html': { name: 'ConsolePage', schema: z.string() } }

export const CONSOLE_OPERATION: Operation = {
  summary: "Show the operator's console",
  tag: 'Operation',
  answer: page,
  errors: ['not_found'],
}

export const PLAYGROUND_OPERATION: Operation = {
  summary: 'Show the playground for customers',
  tag: 'Operation',
  answer: page,
  errors: ['not_found'],
}
