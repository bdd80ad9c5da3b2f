import type { EventEmitter } from 'node:events'

/** Emits, synchronously, that facts have changed, so that carriers have the new facts before anything else happens. */
export type Changes = EventEmitter<{ changed: [] }>
