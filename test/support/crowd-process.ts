import { connect } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'

/**
 * A process of its own, because descriptors are counted by process: opens the given number of connections, sends the given bytes on each,
 * and reports to its parent how many were opened and how many the other side has ended, and again whenever those are more.
 */
const [port = '', count = '', sources = '', first = ''] = process.argv.slice(2)

const AT_A_TIME = 200

const addresses = sources.split(' ')

let opened = 0
let tried = 0
let ended = 0

function open(): Promise<void> {
  const localAddress = addresses[tried++ % addresses.length] ?? ''
  return new Promise((resolve) => {
    const socket = connect({ port: Number(port), host: '127.0.0.1', localAddress }, () => {
      opened += 1
      if (first !== '') socket.write(Buffer.from(first, 'base64'))
      resolve()
    })
    socket.resume()
    socket.once('error', () => resolve())
    socket.once('close', () => {
      ended += 1
      resolve()
    })
  })
}

for (let at = 0; at < Number(count); at += AT_A_TIME) {
  await Promise.all(Array.from({ length: Math.min(AT_A_TIME, Number(count) - at) }, open))
}
// What the other side has ended may still be on its way.
let counted: number
do {
  counted = ended
  await delay(1_000)
} while (ended > counted)
let reported = -1
setInterval(() => {
  if (ended === reported) return
  reported = ended
  process.send?.({ opened, ended })
}, 50)
