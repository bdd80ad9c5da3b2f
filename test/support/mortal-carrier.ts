import { subscribe } from 'node:diagnostics_channel'
import { readFileSync, rmSync } from 'node:fs'
import { ServerResponse } from 'node:http'
import { Socket } from 'node:net'
import { WebSocket } from 'ws'
import { z } from 'zod'
import { EGRESS_EVIDENCE_HEADER, LINK_PATHS } from '../../src/protocol/link.ts'
import { MESSAGE_KINDS } from '../../src/protocol/link-messages.ts'

/** The program of a carrier that ends, or stands still, at a prescribed moment of a call to a provider. */

export const carrierOrderSchema = z.object({
  /** `answered`: the provider's answer has come, and none of it was passed on; `begun`: its first bytes were. */
  at: z.enum(['answered', 'begun']),
  /** `out of room`: for one large object, which ends the whole process. */
  how: z.enum(['out of memory', 'out of room', 'frozen']),
})
export type CarrierOrder = z.output<typeof carrierOrderSchema>

const createdSchema = z.object({
  request: z.object({ url: z.string(), socket: z.instanceof(Socket) }),
  response: z.instanceof(ServerResponse),
})

/** In the first piece of every stream that has text. */
const OUTPUT = '"content":"'

const ordersFile = process.env['CARRIER_ORDERS'] ?? ''

/** Carries the order out if it is for this moment; of all carriers only the first one has it. */
function reach(moment: CarrierOrder['at']): void {
  try {
    const order = carrierOrderSchema.parse(JSON.parse(readFileSync(ordersFile, 'utf8')))
    if (order.at !== moment) return
    rmSync(ordersFile)
    MANNERS[order.how]()
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

/** Larger than all of the heap. */
function makeLargeObject(): void {
  Array.from({ length: 100_000_000 }).fill(0.5)
}

const MANNERS: Readonly<Record<CarrierOrder['how'], () => void>> = {
  'out of memory': fillMemory,
  'out of room': makeLargeObject,
  frozen: standStill,
}

const watched = new WeakSet<Socket>()

subscribe('http.server.response.created', (message) => {
  const { request, response } = createdSchema.parse(message)
  const { egress, waiting } = LINK_PATHS
  if (![egress, waiting].some((path) => request.url.startsWith(path))) return
  const writeHead = response.writeHead.bind(response)
  Object.assign(response, {
    writeHead(...head: Parameters<typeof writeHead>) {
      reach('answered')
      return writeHead(...head)
    },
  })
  watch(request.socket)
})

/** Whatever writes to a connection, in the end it is this that is called. */
function watch(socket: Socket): void {
  if (watched.has(socket)) return
  watched.add(socket)
  const write = socket.write.bind(socket)
  Object.assign(socket, {
    write(...piece: Parameters<typeof write>) {
      const hasOutput = Buffer.from(piece[0]).includes(OUTPUT)
      // When the kernel has it.
      if (hasOutput) setImmediate(() => reach('begun'))
      return write(...piece)
    },
  })
}

const send = Reflect.get(WebSocket.prototype, 'send')
Object.assign(WebSocket.prototype, {
  send(frame: Uint8Array) {
    const bytes = Buffer.from(frame)
    if (bytes.includes(EGRESS_EVIDENCE_HEADER)) reach('answered')
    if (bytes[0] === MESSAGE_KINDS.chunk && bytes.includes(OUTPUT)) {
      setImmediate(() => reach('begun'))
    }
    Reflect.apply(send, this, [frame])
  },
})

await import('../../src/enclave/carrier/carrier-thread.ts')
