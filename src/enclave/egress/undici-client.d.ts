/**
 * Only this module of undici is loaded: the whole package takes twice the memory, and only its HTTP/1.1 client is
 * needed.
 */
declare module 'undici/lib/dispatcher/client.js' {
  import type { Client } from 'undici'

  const constructor: typeof Client
  export default constructor
}
