/** Only this module of undici is loaded: all of it takes twice the memory, for a client of HTTP/1.1. */
declare module 'undici/lib/dispatcher/client.js' {
  import type { Client } from 'undici'

  const constructor: typeof Client
  export default constructor
}
