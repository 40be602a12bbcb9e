-- Rows of gcl tables take the memory of heap's: at most 1.15 of the pages, even if they are small.
CREATE TABLE two_h (a int, b int) USING heap;
CREATE TABLE two_g (a int, b int) USING gcl;
CREATE TABLE nulls_h (a int, b int, c int, d text) USING heap;
CREATE TABLE nulls_g (a int, b int, c int, d text) USING gcl;
CREATE TABLE text_h (a int, b int, c text) USING heap;
CREATE TABLE text_g (a int, b int, c text) USING gcl;
CREATE TABLE wide_h (a int, b text) USING heap;
CREATE TABLE wide_g (a int, b text) USING gcl;
CREATE FUNCTION fill(what text, a_row text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  EXECUTE format('INSERT INTO %I_h SELECT %s FROM generate_series(1, 20000) i', what, a_row);
  EXECUTE format('INSERT INTO %I_g SELECT %s FROM generate_series(1, 20000) i', what, a_row);
END $$;
CREATE FUNCTION ratio(what text) RETURNS numeric LANGUAGE plpgsql AS $$
DECLARE h numeric; g numeric;
BEGIN
  EXECUTE format('SELECT count(DISTINCT (ctid::text::point)[0]) FROM %I_h', what) INTO h;
  EXECUTE format('SELECT count(DISTINCT (ctid::text::point)[0]) FROM %I_g', what) INTO g;
  RETURN g / h;
END $$;
SELECT fill('two', 'i, i'), fill('nulls', 'i, NULL, i, NULL'), fill('text', $$i, i, 'some text of row ' || i$$), fill('wide', $$i, repeat('x', 500)$$);
SELECT what, CASE WHEN ratio(what) BETWEEN 0.99 AND 1.15 THEN 'as small' ELSE ratio(what)::text END FROM unnest('{two,nulls,text,wide}'::text[]) what;
DROP FUNCTION fill, ratio;
DROP TABLE two_h, nulls_h, text_h, wide_h;
DROP TABLE two_g, nulls_g, text_g, wide_g;
