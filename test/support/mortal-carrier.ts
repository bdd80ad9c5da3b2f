import { subscribe } from 'node:diagnostics_channel'
import { readFileSync, rmSync } from 'node:fs'
import { ServerResponse } from 'node:http'
import { z } from 'zod'
import { LINK_PATHS } from '../../src/protocol/link.ts'

/** The program of a carrier that ends, or stands still, at a prescribed moment of a call to a provider. */

export const carrierOrderSchema = z.object({
  /** `answered`: the provider's answer has come, and none of it was passed on; `begun`: its first bytes were. */
  at: z.enum(['answered', 'begun']),
  how: z.enum(['out of memory', 'frozen']),
})
export type CarrierOrder = z.output<typeof carrierOrderSchema>

const createdSchema = z.object({
  request: z.object({ url: z.string() }),
  response: z.instanceof(ServerResponse),
})

const ordersFile = process.env['CARRIER_ORDERS'] ?? ''

/** Carries the order out if it is for this moment; of all carriers only the first one has it. */
function reach(moment: CarrierOrder['at']): void {
  try {
    const order = carrierOrderSchema.parse(JSON.parse(readFileSync(ordersFile, 'utf8')))
    if (order.at !== moment) return
    rmSync(ordersFile)
    if (order.how === 'frozen') standStill()
    else fillMemory()
  } catch {
    // There is no order, or another carrier has it.
  }
}

function standStill(): never {
  for (;;);
}

/** In small objects: for want of room for a large one, V8 would end the whole process. */
function fillMemory(): never {
  let kept: object = {}
  for (;;) kept = { kept }
}

subscribe('http.server.response.created', (message) => {
  const { request, response } = createdSchema.parse(message)
  if (!request.url.startsWith(LINK_PATHS.egress)) return
  const writeHead = response.writeHead.bind(response)
  const write = response.write.bind(response)
  Object.assign(response, {
    writeHead(...head: Parameters<typeof writeHead>) {
      reach('answered')
      return writeHead(...head)
    },
    write: (chunk: unknown) => write(chunk, 'utf8', () => reach('begun')),
  })
})

await import('../../src/enclave/carrier/carrier-thread.ts')
