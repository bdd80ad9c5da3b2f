import { z } from 'zod'

/** JSON has no NaN, so missing figures are null; older reports do not have all of them. */
const figure = z
  .number()
  .nullish()
  .transform((value) => value ?? Number.NaN)

export const sampleSchema = z.object({
  perSecond: figure,
  p50Ms: figure,
  p99Ms: figure,
  firstDeltaP50Ms: figure,
  framesPerSecond: figure,
  gapP50Ms: figure,
  gapP99Ms: figure,
  cpuUs: figure,
  cpuUsBy: z.record(z.string(), figure),
  residentMib: figure,
  invalid: z.string().nullable(),
})

const memoryStartSchema = z.object({
  /** A fixed time after the start, before any request. */
  idleMib: z.number(),
  /** Idle again, after `FIRST_STREAMS` streams. */
  servedMib: z.number(),
  openMib: z.number(),
  perStreamKib: z.number(),
})

const memorySchema = z.object({
  /** Every start that only measured memory; older reports have a single one, in another format. */
  starts: z.array(memoryStartSchema).default([]),
  /** Memory after all windows, of the processes that served them. */
  afterMib: z.number(),
})

export const systemReportSchema = z.object({
  name: z.string(),
  /** Every window by kind, in the order of the rounds. */
  windows: z.record(z.string(), z.array(sampleSchema)),
  memory: memorySchema.nullable(),
  /** Median latency of large prompts and lines, ms. */
  sizesMs: z.record(z.string(), z.number().nullable()),
})

/** All measurements of one run. */
export const reportSchema = z.object({
  takenAt: z.string(),
  command: z.string(),
  machine: z.object({
    cores: z.int(),
    cpu: z.string(),
    loadBefore: z.number(),
    loadAfter: z.number(),
  }),
  systems: z.array(systemReportSchema),
  skipped: z.array(z.object({ name: z.string(), reason: z.string() })),
})

export type Report = z.output<typeof reportSchema>
export type SystemReport = z.output<typeof systemReportSchema>
export type MemoryStart = z.output<typeof memoryStartSchema>
