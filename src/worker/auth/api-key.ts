import { equalBytes, toHex, utf8, type Bytes } from '../../protocol/bytes.ts'

/**
 * API keys: `cmr_<customer>_<key id>_<secret>`. The customer part names the storage to look in and ends in
 * a MAC, so that an invented customer is recognised before any storage is touched.
 */

/** Crockford's base32 in lower case: 32 signs, none that are mistaken for each other. */
const ALPHABET = '0123456789abcdefghjkmnpqrstvwxyz'
const SIGN = `[${ALPHABET}]`

/** 60 random bits name a customer, 80 bits of MAC vouch for it. */
const NAME_SIGNS = 12
const MAC_SIGNS = 16
const KEY_ID_SIGNS = 10
/** 200 random bits. */
const SECRET_SIGNS = 40

const CUSTOMER_ID = `${SIGN}{${NAME_SIGNS + MAC_SIGNS}}`
const FORM = new RegExp(
  `^(cmr_(${CUSTOMER_ID})_${SIGN}{${KEY_ID_SIGNS}})_${SIGN}{${SECRET_SIGNS}}$`,
)
const CUSTOMER_FORM = new RegExp(`^${CUSTOMER_ID}$`)

/** Keep the two uses of the one secret apart. */
const MAC_LABEL = 'cmr/customer-id/v1\0'
const SALT_LABEL = 'cmr/cache-salt/v1\0'

/** Random bytes of the length asked for. */
export type Random = (length: number) => Bytes

export interface NewApiKey {
  /** The whole key, which only its holder keeps. */
  readonly key: string
  /** `cmr_<customer>_<key id>`: names the key and is no secret. */
  readonly prefix: string
}

/** A new key of a customer. */
export function newApiKey(customerId: string, random: Random): NewApiKey {
  const prefix = `cmr_${customerId}_${signs(random(KEY_ID_SIGNS))}`
  return { key: `${prefix}_${signs(random(SECRET_SIGNS))}`, prefix }
}

/** The parts of a key's text, or undefined when it does not have the one form keys have. */
export function parseApiKey(
  text: string,
): { readonly customerId: string; readonly prefix: string } | undefined {
  const [, prefix, customerId] = FORM.exec(text) ?? []
  return prefix === undefined || customerId === undefined ? undefined : { customerId, prefix }
}

/** A new customer id under the directory's secret. */
export async function newCustomerId(secret: CryptoKey, random: Random): Promise<string> {
  const name = signs(random(NAME_SIGNS))
  return name + (await macOf(secret, name))
}

/** Whether an id was made under the directory's secret; takes the same time wherever the MAC differs. */
export async function isCustomerId(secret: CryptoKey, id: string): Promise<boolean> {
  if (!CUSTOMER_FORM.test(id)) return false
  const mac = await macOf(secret, id.slice(0, NAME_SIGNS))
  return equalBytes(utf8(mac), utf8(id.slice(NAME_SIGNS)))
}

/** The form in which WebCrypto takes the directory's secret. */
export function importSecret(secret: Bytes): Promise<CryptoKey> {
  return crypto.subtle.importKey('raw', secret, { name: 'HMAC', hash: 'SHA-256' }, false, ['sign'])
}

/** The salt of a customer's prefix cache: 64 hex digits, the same on every instance of this service. */
export async function cacheSaltOf(secret: CryptoKey, customerId: string): Promise<string> {
  return toHex(await hmac(secret, SALT_LABEL + customerId))
}

async function macOf(secret: CryptoKey, name: string): Promise<string> {
  const mac = await hmac(secret, MAC_LABEL + name)
  return signs(mac.subarray(0, MAC_SIGNS))
}

async function hmac(secret: CryptoKey, text: string): Promise<Bytes> {
  return new Uint8Array(await crypto.subtle.sign('HMAC', secret, utf8(text)))
}

/** Five bits of every byte, one sign each. */
function signs(bytes: Uint8Array): string {
  return Array.from(bytes, (byte) => ALPHABET.charAt(byte & 31)).join('')
}
