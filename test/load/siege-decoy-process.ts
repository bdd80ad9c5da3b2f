import { createServer } from 'node:http'
import { listen } from '../support/listen.ts'

/** Reads each request to its end and refuses it, as cheaply as Node can. */
const server = createServer((request, response) => {
  request.resume()
  request.once('end', () => response.writeHead(429, { 'retry-after': '1' }).end())
})
process.send?.(await listen(server))
process.on('disconnect', () => process.exit())
