/**
 * Settles requests as `settle/settle-sql.ts` settles one. Requests come in rounds with at most one request of each customer.
 * Returns the result of each request as JSON, in order. A value that leaves its range makes the whole call fail; the caller
 * then divides it.
 *
 * One statement does what every settlement needs, because PostgreSQL reads the CHECKs of a table again in each statement;
 * alerts, claims and older evidence have statements of their own, which run only where they are needed.
 */
export const statement = `CREATE OR REPLACE FUNCTION cmr_settle_v1(rounds jsonb, lock_ms integer)
RETURNS SETOF text LANGUAGE plpgsql VOLATILE SET search_path FROM CURRENT SET enable_seqscan = off
SET plan_cache_mode = force_generic_plan AS $cmr$
DECLARE
  round jsonb;
  answers text[];
  fresh_ids text[];
  any_alert boolean;
  any_claim boolean;
  any_older_evidence boolean;
BEGIN
  PERFORM cmr_lock_customers_v1(
    ARRAY(SELECT jsonb_path_query(rounds, '$[*].entries[*].customer_id') #>> '{}'), lock_ms);
  FOR round IN SELECT value -> 'entries' FROM jsonb_array_elements(rounds) LOOP
    WITH entry AS MATERIALIZED (
      SELECT * FROM ROWS FROM (jsonb_to_recordset(round) AS (request_id text, customer_id text,
        key_prefix text, model text, modality text, provider text, region text, billing_unit text,
        audio_seconds double precision, prompt_tokens bigint, completion_tokens bigint, cost_nano bigint,
        discount_pct integer, usd_eur text, failover integer, capped integer, at_ms bigint, claim_name text,
        receipt_id text, jws text, sha256 text, kid text, evidence_refs text, receipt_expires_at bigint,
        evidence text[], alert_below_nano bigint)) WITH ORDINALITY
    ), ended AS MATERIALIZED (
      SELECT entry.ordinality, c.customer_id IS NOT NULL AND NOT EXISTS (
          SELECT 1 FROM usage AS u WHERE u.id = entry.request_id) AS unknown,
        CASE WHEN c.customer_id IS NULL THEN 'no_account'
          WHEN entry.claim_name IS NOT NULL AND EXISTS (SELECT 1 FROM idempotent_requests AS i
            WHERE i.customer_id = entry.customer_id AND i.name = entry.claim_name
              AND i.request_id <> entry.request_id) THEN 'claim_lost'
          ELSE 'settled' END AS outcome
      FROM entry LEFT JOIN customers AS c ON c.customer_id = entry.customer_id
    ), fresh AS MATERIALIZED (
      SELECT entry.* FROM ended JOIN entry USING (ordinality) WHERE outcome = 'settled' AND unknown
    ), closed AS (
      DELETE FROM reservations AS r USING fresh WHERE r.request_id = fresh.request_id
      RETURNING r.request_id, r.amount_nano
    ), account AS (
      UPDATE customers AS c SET balance_nano = c.balance_nano - fresh.cost_nano,
        reserved_nano = c.reserved_nano - COALESCE(closed.amount_nano, 0),
        usage_count = c.usage_count + 1, last_usage_at = GREATEST(c.last_usage_at, fresh.at_ms)
      FROM fresh LEFT JOIN closed USING (request_id) WHERE c.customer_id = fresh.customer_id
      RETURNING fresh.ordinality, c.usage_count, c.last_usage_at, c.balance_nano, c.billing,
        c.alert_balance_nano, c.alert_key_limit_pct
    ), billed AS (
      INSERT INTO usage (id, customer_id, seq, created_at, key_prefix, model, modality, provider, region,
        billing_unit, audio_seconds, prompt_tokens, completion_tokens, cost_nano, discount_pct, usd_eur,
        receipt_id, failover, capped)
      SELECT request_id, customer_id, usage_count, last_usage_at, key_prefix, model, modality, provider,
        region, billing_unit, audio_seconds, prompt_tokens, completion_tokens, cost_nano, discount_pct,
        usd_eur, receipt_id, failover, capped
      FROM fresh JOIN account USING (ordinality)
    ), spent AS (
      UPDATE api_keys AS k SET spent_at = fresh.at_ms, spent_nano = fresh.cost_nano
          + CASE WHEN k.spent_at < cmr_period_start_v1(k.limit_reset, fresh.at_ms) THEN 0
            ELSE k.spent_nano END,
        window_tokens = LEAST(9007199254740991,
          k.window_tokens + fresh.prompt_tokens + fresh.completion_tokens)
      FROM fresh WHERE k.customer_id = fresh.customer_id AND k.key_prefix = fresh.key_prefix
      RETURNING fresh.ordinality, k.limit_nano, k.spent_nano
    ), receipted AS (
      INSERT INTO receipts (customer_id, receipt_id, jws, sha256, kid, evidence_refs, model, provider,
        prompt_tokens, completion_tokens, created_at, expires_at)
      SELECT customer_id, receipt_id, jws, sha256, kid, evidence_refs, model, provider, prompt_tokens,
        completion_tokens, last_usage_at, receipt_expires_at
      FROM fresh JOIN account USING (ordinality) WHERE receipt_id IS NOT NULL
    )
    SELECT array_agg(json_build_object('outcome', ended.outcome,
        'missingEvidence', COALESCE(proof.missing, '{}'))::text ORDER BY ordinality),
      array_agg(entry.request_id) FILTER (WHERE account.ordinality IS NOT NULL),
      -- Divided first: a limit times a hundred may be too large for 64 bits.
      bool_or(entry.alert_below_nano IS NOT NULL AND (
        account.balance_nano < COALESCE(account.alert_balance_nano, entry.alert_below_nano)
        OR spent.spent_nano >= spent.limit_nano / 100 * COALESCE(account.alert_key_limit_pct, 80))),
      bool_or(entry.claim_name IS NOT NULL),
      bool_or(proof.older)
    INTO answers, fresh_ids, any_alert, any_claim, any_older_evidence
    FROM entry JOIN ended USING (ordinality)
      LEFT JOIN account USING (ordinality) LEFT JOIN spent USING (ordinality)
      LEFT JOIN LATERAL (
        SELECT array_agg(ref) FILTER (WHERE e.sha256 IS NULL) AS missing,
          bool_or(e.expires_at < (entry.receipt_expires_at + 3599999) / 3600000 * 3600000) AS older
        FROM unnest(entry.evidence) AS ref LEFT JOIN evidence AS e
          ON e.customer_id = entry.customer_id AND e.sha256 = ref
        WHERE ended.outcome = 'settled') AS proof ON entry.evidence IS NOT NULL;

    IF any_alert THEN
      WITH bill AS MATERIALIZED (
        SELECT entry.*, c.billing, c.balance_nano, k.limit_nano, k.spent_nano, k.limit_reset,
          COALESCE(c.alert_balance_nano, entry.alert_below_nano) AS below,
          k.limit_nano / 100 * COALESCE(c.alert_key_limit_pct, 80) AS near
        FROM jsonb_to_recordset(round) AS entry (request_id text, customer_id text, key_prefix text,
            cost_nano bigint, at_ms bigint, alert_below_nano bigint)
          JOIN customers AS c ON c.customer_id = entry.customer_id
          LEFT JOIN api_keys AS k ON k.customer_id = entry.customer_id AND k.key_prefix = entry.key_prefix
        WHERE entry.request_id = ANY (fresh_ids) AND entry.alert_below_nano IS NOT NULL
      )
      INSERT INTO webhook_events (id, type, customer_id, subject, amount_nano, limit_nano, created_at)
      SELECT request_id || '.balance', 'balance.low', customer_id, '', balance_nano, below, at_ms
        FROM bill WHERE billing = 'prepaid' AND balance_nano < below AND balance_nano + cost_nano >= below
      UNION ALL
      SELECT request_id || '.key', 'key.limit_near', customer_id, key_prefix, spent_nano, limit_nano, at_ms
        FROM bill WHERE spent_nano >= near AND spent_nano - cost_nano < near
      UNION ALL
      SELECT key_prefix || '.' || limit_nano || '.' || cmr_period_start_v1(limit_reset, at_ms),
          'key.limit_reached', customer_id, key_prefix, spent_nano, limit_nano, at_ms
        FROM bill WHERE spent_nano >= limit_nano
      ON CONFLICT (id) DO NOTHING;
    END IF;

    IF any_claim THEN
      INSERT INTO idempotent_requests AS i
        (customer_id, name, request_id, fingerprint, done, bytes, held_until, sweep_at, answer)
      SELECT customer_id, claim_name, request_id, claim_fingerprint, 1, COALESCE(LENGTH(answer), 0),
        claim_until, claim_until, answer
      FROM jsonb_to_recordset(round) AS entry (request_id text, customer_id text, claim_name text,
        claim_fingerprint text, claim_until bigint, answer text)
      WHERE claim_name IS NOT NULL AND request_id = ANY (fresh_ids)
      ON CONFLICT (customer_id, name) DO UPDATE SET done = 1, bytes = excluded.bytes,
        held_until = excluded.held_until, answer = excluded.answer,
        sweep_at = GREATEST(i.fenced_until, excluded.sweep_at);
      -- The newest answers of a customer are kept, up to so many bytes in all.
      UPDATE idempotent_requests AS i SET answer = NULL, bytes = 0
      FROM jsonb_to_recordset(round) AS entry (request_id text, customer_id text, claim_bytes bigint,
          answer text)
        CROSS JOIN LATERAL (
          SELECT o.name, SUM(o.bytes) OVER (ORDER BY o.held_until DESC, o.name) AS newer
          FROM idempotent_requests AS o
          WHERE o.customer_id = entry.customer_id AND o.bytes > 0) AS kept
      WHERE entry.answer IS NOT NULL AND entry.request_id = ANY (fresh_ids)
        AND i.customer_id = entry.customer_id AND i.name = kept.name AND i.bytes > 0
        AND kept.newer > entry.claim_bytes;
    END IF;

    -- Kept to the end of the hour, so that the large row is not written again for every receipt.
    IF any_older_evidence THEN
      UPDATE evidence AS e SET expires_at = (entry.receipt_expires_at + 3599999) / 3600000 * 3600000
      FROM jsonb_to_recordset(round) AS entry (customer_id text, evidence text[], receipt_expires_at bigint)
      WHERE e.customer_id = entry.customer_id AND e.sha256 = ANY (entry.evidence)
        AND e.expires_at < (entry.receipt_expires_at + 3599999) / 3600000 * 3600000;
    END IF;

    RETURN QUERY SELECT unnest(answers);
  END LOOP;
END
$cmr$`
