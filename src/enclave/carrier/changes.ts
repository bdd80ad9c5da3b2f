import type { EventEmitter } from 'node:events'

/** Says that facts have changed, before anything else is done. */
export type Changes = EventEmitter<{ changed: [] }>
