"""Statements of TPC-H and of the star schema benchmark, and the tables that they are of."""

COLUMNS = {
    "lineitem": "l_orderkey l_partkey l_suppkey l_quantity l_extendedprice l_discount l_tax l_returnflag"
    " l_linestatus l_shipdate l_commitdate l_receiptdate l_shipinstruct l_shipmode",
    "orders": "o_orderkey o_custkey o_orderdate o_orderpriority o_shippriority o_totalprice o_orderstatus"
    " o_comment",
    "part": "p_partkey p_name p_mfgr p_brand p_type p_size p_container",
    "customer": "c_custkey c_nationkey c_mktsegment c_name c_acctbal c_address c_phone c_comment",
    "partsupp": "ps_partkey ps_suppkey ps_supplycost ps_availqty",
    "supplier": "s_suppkey s_nationkey s_name s_address s_phone s_acctbal s_comment",
    "nation": "n_nationkey n_name n_regionkey",
    "region": "r_regionkey r_name",
}
PLACE = "n_name as {0}_nation, r_name as {0}_region, left(n_name, 9) || ({0}_{1} % 10) as {0}_city"
REGION = "join nation on {0}_nationkey = n_nationkey join region on n_regionkey = r_regionkey"
SSB = {
    "lineorder": """select cast(strftime(o_orderdate, '%Y%m%d') as integer) as lo_orderdate,
        cast(l_quantity as bigint) as lo_quantity, cast(l_discount * 100 as bigint) as lo_discount,
        cast(l_extendedprice * 100 as bigint) as lo_extendedprice,
        cast(l_extendedprice * (1 - l_discount) * 100 as bigint) as lo_revenue,
        cast(l_extendedprice / l_quantity * 60 as bigint) as lo_supplycost,
        l_partkey as lo_partkey, l_suppkey as lo_suppkey, o_custkey as lo_custkey
        from lineitem join orders on l_orderkey = o_orderkey""",
    "dates": """select distinct cast(strftime(o_orderdate, '%Y%m%d') as integer) as d_datekey,
        cast(year(o_orderdate) as integer) as d_year, strftime(o_orderdate, '%b%Y') as d_yearmonth,
        cast(year(o_orderdate) * 100 + month(o_orderdate) as integer) as d_yearmonthnum,
        cast(week(o_orderdate) as integer) as d_weeknuminyear from orders""",
    "ssb_part": """select p_partkey, 'MFGR#' || right(p_mfgr, 1) as p_mfgr,
        'MFGR#' || right(p_brand, 2) as p_category,
        'MFGR#' || right(p_brand, 2) || (p_partkey % 40 + 1) as p_brand1 from part""",
    "ssb_supplier": f"select s_suppkey, {PLACE.format('s', 'suppkey')} from supplier {REGION.format('s')}",
    "ssb_customer": f"select c_custkey, {PLACE.format('c', 'custkey')} from customer {REGION.format('c')}",
}
OF_SUPPLIERS = """from lineorder, dates, ssb_part, ssb_supplier where lo_orderdate = d_datekey
    and lo_partkey = p_partkey and lo_suppkey = s_suppkey and {} group by d_year, p_brand1
    order by d_year, p_brand1"""
OF_CUSTOMERS = """select c_{0}, s_{0}, d_year, sum(lo_revenue) as revenue
    from ssb_customer, lineorder, ssb_supplier, dates where lo_custkey = c_custkey and lo_suppkey = s_suppkey
    and lo_orderdate = d_datekey and {1} group by c_{0}, s_{0}, d_year
    order by d_year, revenue desc, c_{0}, s_{0}"""
PROFITS = """select d_year, {0}, sum(lo_revenue - lo_supplycost) as profit
    from dates, ssb_customer, ssb_supplier, ssb_part, lineorder where lo_custkey = c_custkey
    and lo_suppkey = s_suppkey and lo_partkey = p_partkey and lo_orderdate = d_datekey and {1}
    group by d_year, {0} order by d_year, {0}"""
CITIES = "c_city in ('UNITED KI1', 'UNITED KI5') and s_city in ('UNITED KI1', 'UNITED KI5')"
YEARS = "d_year >= 1992 and d_year <= 1997"
AMERICAN = "c_region = 'AMERICA' and s_region = 'AMERICA'"
LATE = "(d_year = 1997 or d_year = 1998)"
REVENUE = (
    "sum(lo_extendedprice * lo_discount) as revenue from lineorder, dates where lo_orderdate = d_datekey"
)
STATEMENTS = {
    "tpch.q1": """select l_returnflag, l_linestatus, sum(l_quantity) as sum_qty,
        sum(l_extendedprice) as sum_base_price, sum(l_extendedprice * (1 - l_discount)) as sum_disc_price,
        sum(l_extendedprice * (1 - l_discount) * (1 + l_tax)) as sum_charge, avg(l_quantity) as avg_qty,
        avg(l_extendedprice) as avg_price, avg(l_discount) as avg_disc, count(*) as count_order
        from lineitem where l_shipdate <= date '1998-12-01' - interval '90' day
        group by l_returnflag, l_linestatus order by l_returnflag, l_linestatus""",
    "tpch.q2": """select s_acctbal, s_name, n_name, p_partkey, p_mfgr, s_address, s_phone, s_comment
        from part, supplier, partsupp, nation, region where p_partkey = ps_partkey and s_suppkey = ps_suppkey
        and p_size = 15 and p_type like '%BRASS' and s_nationkey = n_nationkey and n_regionkey = r_regionkey
        and r_name = 'EUROPE' and ps_supplycost = (select min(ps_supplycost)
        from partsupp, supplier, nation, region where p_partkey = ps_partkey and s_suppkey = ps_suppkey
        and s_nationkey = n_nationkey and n_regionkey = r_regionkey and r_name = 'EUROPE')
        order by s_acctbal desc, n_name, s_name, p_partkey limit 100""",
    "tpch.q3": """select l_orderkey, sum(l_extendedprice * (1 - l_discount)) as revenue, o_orderdate,
        o_shippriority from customer, orders, lineitem where c_mktsegment = 'BUILDING'
        and c_custkey = o_custkey and l_orderkey = o_orderkey and o_orderdate < date '1995-03-15'
        and l_shipdate > date '1995-03-15' group by l_orderkey, o_orderdate, o_shippriority
        order by revenue desc, o_orderdate limit 10""",
    "tpch.q4": """select o_orderpriority, count(*) as order_count from orders
        where o_orderdate >= date '1993-07-01' and o_orderdate < date '1993-07-01' + interval '3' month
        and exists (select * from lineitem where l_orderkey = o_orderkey and l_commitdate < l_receiptdate)
        group by o_orderpriority order by o_orderpriority""",
    "tpch.q5": """select n_name, sum(l_extendedprice * (1 - l_discount)) as revenue
        from customer, orders, lineitem, supplier, nation, region
        where c_custkey = o_custkey and l_orderkey = o_orderkey and l_suppkey = s_suppkey
        and c_nationkey = s_nationkey and s_nationkey = n_nationkey and n_regionkey = r_regionkey
        and r_name = 'ASIA' and o_orderdate >= date '1994-01-01'
        and o_orderdate < date '1994-01-01' + interval '1' year group by n_name order by revenue desc""",
    "tpch.q6": """select sum(l_extendedprice * l_discount) as revenue from lineitem
        where l_shipdate >= date '1994-01-01' and l_shipdate < date '1994-01-01' + interval '1' year
        and l_discount between 0.06 - 0.01 and 0.06 + 0.01 and l_quantity < 24""",
    "tpch.q7": """select supp_nation, cust_nation, l_year, sum(volume) as revenue from (
        select n1.n_name as supp_nation, n2.n_name as cust_nation, extract(year from l_shipdate) as l_year,
        l_extendedprice * (1 - l_discount) as volume
        from supplier, lineitem, orders, customer, nation n1, nation n2
        where s_suppkey = l_suppkey and o_orderkey = l_orderkey and c_custkey = o_custkey
        and s_nationkey = n1.n_nationkey and c_nationkey = n2.n_nationkey
        and ((n1.n_name = 'FRANCE' and n2.n_name = 'GERMANY')
        or (n1.n_name = 'GERMANY' and n2.n_name = 'FRANCE'))
        and l_shipdate between date '1995-01-01' and date '1996-12-31') as shipping
        group by supp_nation, cust_nation, l_year order by supp_nation, cust_nation, l_year""",
    "tpch.q8": """select o_year,
        sum(case when nation = 'BRAZIL' then volume else 0 end) / sum(volume) as mkt_share from (
        select extract(year from o_orderdate) as o_year, l_extendedprice * (1 - l_discount) as volume,
        n2.n_name as nation from part, supplier, lineitem, orders, customer, nation n1, nation n2, region
        where p_partkey = l_partkey and s_suppkey = l_suppkey and l_orderkey = o_orderkey
        and o_custkey = c_custkey and c_nationkey = n1.n_nationkey and n1.n_regionkey = r_regionkey
        and r_name = 'AMERICA' and s_nationkey = n2.n_nationkey
        and o_orderdate between date '1995-01-01' and date '1996-12-31'
        and p_type = 'ECONOMY ANODIZED STEEL') as all_nations group by o_year order by o_year""",
    "tpch.q9": """select nation, o_year, sum(amount) as sum_profit from (
        select n_name as nation, extract(year from o_orderdate) as o_year,
        l_extendedprice * (1 - l_discount) - ps_supplycost * l_quantity as amount
        from part, supplier, lineitem, partsupp, orders, nation where s_suppkey = l_suppkey
        and ps_suppkey = l_suppkey and ps_partkey = l_partkey and p_partkey = l_partkey
        and o_orderkey = l_orderkey and s_nationkey = n_nationkey and p_name like '%green%') as profit
        group by nation, o_year order by nation, o_year desc""",
    "tpch.q10": """select c_custkey, c_name, sum(l_extendedprice * (1 - l_discount)) as revenue, c_acctbal,
        n_name, c_address, c_phone, c_comment from customer, orders, lineitem, nation
        where c_custkey = o_custkey and l_orderkey = o_orderkey and o_orderdate >= date '1993-10-01'
        and o_orderdate < date '1993-10-01' + interval '3' month and l_returnflag = 'R'
        and c_nationkey = n_nationkey group by c_custkey, c_name, c_acctbal, c_phone, n_name, c_address,
        c_comment order by revenue desc limit 20""",
    "tpch.q11": """select ps_partkey, sum(ps_supplycost * ps_availqty) as value
        from partsupp, supplier, nation where ps_suppkey = s_suppkey
        and s_nationkey = n_nationkey and n_name = 'GERMANY' group by ps_partkey
        having sum(ps_supplycost * ps_availqty) > (
        select sum(ps_supplycost * ps_availqty) * 0.0001 from partsupp, supplier, nation
        where ps_suppkey = s_suppkey and s_nationkey = n_nationkey and n_name = 'GERMANY')
        order by value desc, ps_partkey""",
    "tpch.q12": """select l_shipmode,
        sum(case when o_orderpriority = '1-URGENT' or o_orderpriority = '2-HIGH' then 1 else 0 end) as high,
        sum(case when o_orderpriority <> '1-URGENT' and o_orderpriority <> '2-HIGH' then 1 else 0 end) as low
        from orders, lineitem where o_orderkey = l_orderkey and l_shipmode in ('MAIL', 'SHIP')
        and l_commitdate < l_receiptdate and l_shipdate < l_commitdate and l_receiptdate >= date '1994-01-01'
        and l_receiptdate < date '1994-01-01' + interval '1' year group by l_shipmode order by l_shipmode""",
    "tpch.q13": """select c_count, count(*) as custdist from (select c_custkey, count(o_orderkey) as c_count
        from customer left outer join orders on c_custkey = o_custkey
        and o_comment not like '%special%requests%' group by c_custkey) as c_orders
        group by c_count order by custdist desc, c_count desc""",
    "tpch.q14": """select 100.00 * sum(case when p_type like 'PROMO%' then l_extendedprice * (1 - l_discount)
        else 0 end) / sum(l_extendedprice * (1 - l_discount)) as promo_revenue from lineitem, part
        where l_partkey = p_partkey and l_shipdate >= date '1995-09-01'
        and l_shipdate < date '1995-09-01' + interval '1' month""",
    "tpch.q15": """with revenue as (select l_suppkey as supplier_no,
        sum(l_extendedprice * (1 - l_discount)) as total_revenue from lineitem
        where l_shipdate >= date '1996-01-01' and l_shipdate < date '1996-01-01' + interval '3' month
        group by l_suppkey)
        select s_suppkey, s_name, s_address, s_phone, total_revenue from supplier, revenue
        where s_suppkey = supplier_no and total_revenue = (select max(total_revenue) from revenue)
        order by s_suppkey""",
    "tpch.q16": """select p_brand, p_type, p_size, count(distinct ps_suppkey) as supplier_cnt
        from partsupp, part where p_partkey = ps_partkey and p_brand <> 'Brand#45'
        and p_type not like 'MEDIUM POLISHED%'
        and p_size in (49, 14, 23, 45, 19, 3, 36, 9) and ps_suppkey not in (select s_suppkey from supplier
        where s_comment like '%Customer%Complaints%') group by p_brand, p_type, p_size
        order by supplier_cnt desc, p_brand, p_type, p_size""",
    "tpch.q17": """select sum(l_extendedprice) / 7.0 as avg_yearly from lineitem, part
        where p_partkey = l_partkey and p_brand = 'Brand#23' and p_container = 'MED BOX'
        and l_quantity < (select 0.2 * avg(l_quantity) from lineitem where l_partkey = p_partkey)""",
    "tpch.q18": """select c_name, c_custkey, o_orderkey, o_orderdate, o_totalprice, sum(l_quantity)
        from customer, orders, lineitem where o_orderkey in (select l_orderkey from lineitem
        group by l_orderkey having sum(l_quantity) > 300) and c_custkey = o_custkey
        and o_orderkey = l_orderkey group by c_name, c_custkey, o_orderkey, o_orderdate, o_totalprice
        order by o_totalprice desc, o_orderdate limit 100""",
    "tpch.q19": """select sum(l_extendedprice * (1 - l_discount)) as revenue from lineitem, part
        where p_partkey = l_partkey and l_shipinstruct = 'DELIVER IN PERSON'
        and l_shipmode in ('AIR', 'AIR REG')
        and ((p_brand = 'Brand#12' and p_container in ('SM CASE', 'SM BOX', 'SM PACK', 'SM PKG')
        and l_quantity >= 1 and l_quantity <= 11 and p_size between 1 and 5)
        or (p_brand = 'Brand#23' and p_container in ('MED BAG', 'MED BOX', 'MED PKG', 'MED PACK')
        and l_quantity >= 10 and l_quantity <= 20 and p_size between 1 and 10)
        or (p_brand = 'Brand#34' and p_container in ('LG CASE', 'LG BOX', 'LG PACK', 'LG PKG')
        and l_quantity >= 20 and l_quantity <= 30 and p_size between 1 and 15))""",
    "tpch.q20": """select s_name, s_address from supplier, nation where s_suppkey in (select ps_suppkey
        from partsupp where ps_partkey in (select p_partkey from part where p_name like 'forest%')
        and ps_availqty > (select 0.5 * sum(l_quantity) from lineitem where l_partkey = ps_partkey
        and l_suppkey = ps_suppkey and l_shipdate >= date '1994-01-01'
        and l_shipdate < date '1994-01-01' + interval '1' year))
        and s_nationkey = n_nationkey and n_name = 'CANADA' order by s_name""",
    "tpch.q21": """select s_name, count(*) as numwait from supplier, lineitem l1, orders, nation
        where s_suppkey = l1.l_suppkey and o_orderkey = l1.l_orderkey and o_orderstatus = 'F'
        and l1.l_receiptdate > l1.l_commitdate and exists (select * from lineitem l2
        where l2.l_orderkey = l1.l_orderkey and l2.l_suppkey <> l1.l_suppkey)
        and not exists (select * from lineitem l3 where l3.l_orderkey = l1.l_orderkey
        and l3.l_suppkey <> l1.l_suppkey and l3.l_receiptdate > l3.l_commitdate)
        and s_nationkey = n_nationkey and n_name = 'SAUDI ARABIA'
        group by s_name order by numwait desc, s_name limit 100""",
    "tpch.q22": """select cntrycode, count(*) as numcust, sum(c_acctbal) as totacctbal from (
        select substring(c_phone from 1 for 2) as cntrycode, c_acctbal from customer
        where substring(c_phone from 1 for 2) in ('13', '31', '23', '29', '30', '18', '17')
        and c_acctbal > (select avg(c_acctbal) from customer where c_acctbal > 0.00
        and substring(c_phone from 1 for 2) in ('13', '31', '23', '29', '30', '18', '17'))
        and not exists (select * from orders where o_custkey = c_custkey)) as custsale
        group by cntrycode order by cntrycode""",
    "ssb.q1.1": f"select {REVENUE} and d_year = 1993 and lo_discount between 1 and 3 and lo_quantity < 25",
    "ssb.q1.2": f"select {REVENUE} and d_yearmonthnum = 199401 and lo_discount between 4 and 6"
    " and lo_quantity between 26 and 35",
    "ssb.q1.3": f"select {REVENUE} and d_weeknuminyear = 6 and d_year = 1994 and lo_discount between 5 and 7"
    " and lo_quantity between 26 and 35",
    "ssb.q2.1": "select sum(lo_revenue) as revenue, d_year, p_brand1 "
    + OF_SUPPLIERS.format("p_category = 'MFGR#12' and s_region = 'AMERICA'"),
    "ssb.q2.2": "select sum(lo_revenue) as revenue, d_year, p_brand1 "
    + OF_SUPPLIERS.format("p_brand1 between 'MFGR#2221' and 'MFGR#2228' and s_region = 'ASIA'"),
    "ssb.q2.3": "select sum(lo_revenue) as revenue, d_year, p_brand1 "
    + OF_SUPPLIERS.format("p_brand1 = 'MFGR#2239' and s_region = 'EUROPE'"),
    "ssb.q3.1": OF_CUSTOMERS.format("nation", f"c_region = 'ASIA' and s_region = 'ASIA' and {YEARS}"),
    "ssb.q3.2": OF_CUSTOMERS.format(
        "city", f"c_nation = 'UNITED STATES' and s_nation = 'UNITED STATES' and {YEARS}"
    ),
    "ssb.q3.3": OF_CUSTOMERS.format("city", f"{CITIES} and {YEARS}"),
    "ssb.q3.4": OF_CUSTOMERS.format("city", f"{CITIES} and d_yearmonth = 'Dec1997'"),
    "ssb.q4.1": PROFITS.format("c_nation", f"{AMERICAN} and p_mfgr in ('MFGR#1', 'MFGR#2')"),
    "ssb.q4.2": PROFITS.format(
        "s_nation, p_category", f"{AMERICAN} and {LATE} and p_mfgr in ('MFGR#1', 'MFGR#2')"
    ),
    "ssb.q4.3": PROFITS.format(
        "s_city, p_brand1", f"s_nation = 'UNITED STATES' and {LATE} and p_category = 'MFGR#14'"
    ),
}


CROSS_PRODUCTS = ("tpch.q2", "tpch.q5", "tpch.q7", "tpch.q8", "tpch.q9", "tpch.q11", "tpch.q20", "tpch.q21")
"""Of which Polars makes more rows than fit memory: it joins tables with commas between them by products."""

FOR_POLARS = {
    "tpch.q3": [("customer, orders, lineitem where", "lineitem join orders on l_orderkey = o_orderkey"
                 " join customer on o_custkey = c_custkey where")],
    "tpch.q10": [("customer, orders, lineitem, nation", "lineitem join orders on l_orderkey = o_orderkey"
                  " join customer on o_custkey = c_custkey join nation on c_nationkey = n_nationkey")],
    "tpch.q18": [("customer, orders, lineitem where", "lineitem join orders on l_orderkey = o_orderkey"
                  " join customer on o_custkey = c_custkey where"), ("o_orderkey in", "l_orderkey in"),
                 (", o_orderkey,", ", l_orderkey,")],
}  # fmt: skip
"""What Polars is asked instead: the same with joins that it plans as such."""
